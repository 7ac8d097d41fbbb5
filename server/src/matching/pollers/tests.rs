//! Which workers are remembered, and how much of them.

use super::*;

const BEGIN: Timestamp = Timestamp(1_000_000_000_000);

fn worker(identity: &str) -> Poller {
    Poller { identity: identity.into(), ..Poller::default() }
}

/// A worker whose description takes about `n_bytes`.
fn verbose(identity: &str, n_bytes: usize) -> Poller {
    let deployment_name = "d".repeat(n_bytes);
    let deployment_options = Some(WorkerDeploymentOptions { deployment_name, ..Default::default() });
    Poller { deployment_options, ..worker(identity) }
}

fn history() -> (PollerHistory, Arc<PollerMemory>) {
    let memory = Arc::<PollerMemory>::default();
    (PollerHistory::new(Arc::clone(&memory)), memory)
}

fn used(memory: &PollerMemory) -> usize {
    memory.0.load(Ordering::Relaxed)
}

fn answer_bytes(history: &PollerHistory) -> usize {
    history.list(BEGIN).iter().map(Message::encoded_len).sum()
}

#[test]
fn a_queue_remembers_a_bounded_number_of_workers_and_forgets_the_oldest() {
    let (mut history, _) = history();
    for n in 0..REMEMBERED + 10 {
        history.saw(&worker(&n.to_string()), BEGIN + Duration::from_nanos(n as u64));
    }
    let listed = history.list(BEGIN);
    assert_eq!(listed.len(), REMEMBERED);
    assert!(listed.iter().all(|poller| poller.identity.parse::<usize>().unwrap() >= 10));
}

#[test]
fn a_queue_remembers_a_bounded_number_of_bytes() {
    let (mut history, memory) = history();
    for n in 0..REMEMBERED {
        history.saw(&verbose(&n.to_string(), 5_000), BEGIN);
    }
    assert!(answer_bytes(&history) > QUEUE_BYTES / 2, "most of the room is used");
    assert!(answer_bytes(&history) <= QUEUE_BYTES, "an answer has a bound");
    assert!(used(&memory) <= QUEUE_BYTES);
}

#[test]
fn a_worker_that_describes_itself_at_too_great_length_is_served_but_not_listed() {
    let (mut history, memory) = history();
    history.saw(&verbose("short", 10), BEGIN);
    history.saw(&verbose("long", QUEUE_BYTES), BEGIN);
    assert_eq!(history.list(BEGIN).len(), 1);
    assert!(history.has_seen_within(Duration::from_secs(1), BEGIN), "its queue is polled all the same");
    assert!(used(&memory) < 1_000);
}

#[test]
fn all_queues_together_remember_a_bounded_number_of_bytes_and_give_them_back() {
    let memory = Arc::<PollerMemory>::default();
    let mut histories = Vec::new();
    for queue in 0..100 {
        let mut history = PollerHistory::new(Arc::clone(&memory));
        for n in 0..200 {
            history.saw(&verbose(&format!("{queue}-{n}"), 4_000), BEGIN);
        }
        histories.push(history);
    }
    assert!(used(&memory) > NODE_BYTES - 10_000 && used(&memory) <= NODE_BYTES);
    histories.clear();
    assert_eq!(used(&memory), 0);
}

#[test]
fn a_worker_that_changes_its_description_or_leaves_gives_its_bytes_back() {
    let (mut history, memory) = history();
    for n_bytes in [5_000, 10, 500] {
        history.saw(&verbose("worker", n_bytes), BEGIN);
    }
    let kept = used(&memory);
    assert!((500..1_000).contains(&kept), "{kept}");
    history.saw(&verbose("worker", 500), BEGIN + Duration::from_secs(1));
    assert_eq!((used(&memory), history.list(BEGIN).len()), (kept, 1));
    history.left("worker");
    assert_eq!(used(&memory), 0);
}

#[test]
fn workers_that_are_long_gone_make_room_first() {
    let (mut history, memory) = history();
    for n in 0..REMEMBERED {
        history.saw(&worker(&n.to_string()), BEGIN);
    }
    history.saw(&worker("later"), BEGIN + REMEMBERED_FOR);
    assert_eq!(history.list(BEGIN + REMEMBERED_FOR).len(), 1);
    assert!(used(&memory) < 1_000);
}
