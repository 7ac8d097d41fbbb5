//! Messages are numbered without a gap, each enqueued once whatever the store says.

use persistence::error::StoreError;
use persistence::model::{Fault, Faults};
use persistence::stores::queues::{Message, QueueBounds, QueueKey};
use uuid::Uuid;
use workflow::Timestamp;

use super::{benches, on_model};

fn queue(name: &str) -> QueueKey {
    QueueKey { queue_type: 1, name: name.into() }
}

fn message(text: &str) -> Message {
    Message { encoding: 3, payload: text.to_owned().into() }
}

#[tokio::test]
async fn messages_are_read_as_they_were_enqueued_from_any_place() {
    for bench in benches() {
        let (store, queue) = (&bench.stores.queues, queue("dead letters"));
        let one = store.enqueue(&queue, Uuid::new_v4(), &[message("a"), message("b")]).await.unwrap();
        let three = store.enqueue(&queue, Uuid::new_v4(), &[message("c")]).await.unwrap();
        assert_eq!((one, three), (1, 3));
        let all = store.read(&queue, 0, 10).await.unwrap();
        let read: Vec<_> = all.messages.iter().map(|stored| (stored.message_id, stored.message.clone())).collect();
        assert_eq!((read, all.has_more), (vec![(1, message("a")), (2, message("b")), (3, message("c"))], false));
        let page = store.read(&queue, 1, 1).await.unwrap();
        assert_eq!((page.messages[0].message_id, page.messages.len(), page.has_more), (2, 1, true));
    }
}

#[tokio::test]
async fn deleting_moves_the_front_and_never_the_numbering() {
    for bench in benches() {
        let (store, queue) = (&bench.stores.queues, queue("q"));
        let bounds = |first_message_id, next_message_id| QueueBounds { first_message_id, next_message_id };
        assert_eq!(store.bounds(&queue).await.unwrap(), bounds(1, 1));
        store.delete_up_to(&queue, 5).await.unwrap();
        store.enqueue(&queue, Uuid::new_v4(), &["a", "b", "c"].map(message)).await.unwrap();
        store.delete_up_to(&queue, 2).await.unwrap();
        store.delete_up_to(&queue, 1).await.unwrap();
        assert_eq!(store.bounds(&queue).await.unwrap(), bounds(3, 4));
        assert_eq!(store.read(&queue, 0, 10).await.unwrap().messages[0].message_id, 3);
        store.delete_up_to(&queue, 100).await.unwrap();
        assert_eq!(store.bounds(&queue).await.unwrap(), bounds(4, 4));
        assert_eq!(store.enqueue(&queue, Uuid::new_v4(), &[message("d")]).await.unwrap(), 4);
    }
}

#[tokio::test]
async fn queues_are_listed_once_created_until_deleted() {
    for bench in benches() {
        let store = &bench.stores.queues;
        for name in ["b", "a", "c", "a"] {
            store.create(&queue(name), Timestamp(1)).await.unwrap();
        }
        let other = QueueKey { queue_type: 2, name: "other".into() };
        store.create(&other, Timestamp(1)).await.unwrap();
        store.enqueue(&queue("b"), Uuid::new_v4(), &[message("x")]).await.unwrap();
        let page = store.list(1, None, 2).await.unwrap();
        assert_eq!((page.names.as_slice(), page.has_more), (["a".into(), "b".into()].as_slice(), true));
        assert_eq!(store.list(1, Some("b"), 2).await.unwrap().names, ["c".into()]);

        store.delete(&queue("b")).await.unwrap();
        store.delete(&queue("b")).await.unwrap();
        assert_eq!(store.list(1, None, 9).await.unwrap().names, ["a".into(), "c".into()]);
        assert_eq!(store.read(&queue("b"), 0, 9).await.unwrap().messages, []);
    }
}

#[tokio::test]
async fn an_unknown_outcome_enqueues_once() {
    for fault in [Fault::TimeoutApplied, Fault::TimeoutNotApplied, Fault::AppliedLater] {
        let (model, stores) = on_model();
        model.inject(fault);
        let id = stores.queues.enqueue(&queue("q"), Uuid::new_v4(), &["a", "b"].map(message)).await.unwrap();
        assert_eq!(id, 1, "{fault:?}");
        assert_eq!(stores.queues.read(&queue("q"), 0, 9).await.unwrap().messages.len(), 2, "{fault:?}");
    }
}

#[tokio::test]
async fn many_writers_under_faults_lose_and_double_nothing() {
    for seed in 0..30 {
        let (model, stores) = on_model();
        model.set_faults(Faults {
            timeout_applied: 0.1,
            timeout_not_applied: 0.1,
            applied_later: 0.1,
            ..Faults::none(seed)
        });
        let writers: Vec<_> = (0..6)
            .map(|writer: u32| {
                let store = stores.queues.clone();
                let text = writer.to_string();
                tokio::spawn(async move { store.enqueue(&queue("q"), Uuid::new_v4(), &[message(&text)]).await })
            })
            .collect();
        let mut acknowledged = Vec::new();
        let mut n_unknown = 0;
        for (writer, outcome) in writers.into_iter().enumerate() {
            match outcome.await.unwrap() {
                Ok(id) => acknowledged.push((id, writer.to_string())),
                Err(StoreError::OutcomeUnknown(_)) => n_unknown += 1,
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
        model.stop_faults();
        let bounds = stores.queues.bounds(&queue("q")).await.unwrap();
        let stored = stores.queues.read(&queue("q"), 0, 100).await.unwrap().messages;
        let ids: Vec<_> = stored.iter().map(|stored| stored.message_id).collect();
        assert_eq!(ids, (1..bounds.next_message_id).collect::<Vec<_>>(), "seed {seed}");
        assert!(stored.len() <= acknowledged.len() + n_unknown, "seed {seed}: a message is there twice");
        for (id, text) in acknowledged {
            let found = stored.iter().find(|stored| stored.message_id == id).map(|stored| &stored.message);
            assert_eq!(found, Some(&message(&text)), "seed {seed}");
        }
    }
}
