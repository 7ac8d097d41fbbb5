//! What the registry caches, and what it reads from the store.

use persistence::counted::{Counted, Counts};
use persistence::model::Model;
use persistence::stores::Stores;
use uuid::Uuid;

use super::*;

fn registry() -> (NamespaceRegistry, Arc<Counts>) {
    let (engine, counts) = Counted::new(Model::new());
    (NamespaceRegistry::new(Stores::new(engine).namespaces, Env::simulated(1)), counts)
}

fn id(n: u128) -> NamespaceId {
    NamespaceId(Uuid::from_u128(n))
}

fn not_found(name: &str) -> ServiceError {
    ServiceError::NamespaceNotFound { namespace: name.into() }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_read_once() {
    let (registry, counts) = registry();
    registry.ensure(&["orders".into()], "here").await.unwrap();
    let (fresh, asked) = (registry.by_name("orders").await.unwrap(), counts.statements());
    for _ in 0..10 {
        assert_eq!(registry.by_name("orders").await.unwrap(), fresh);
        assert_eq!(registry.by_id(fresh.id).await.unwrap(), fresh);
    }
    assert_eq!(counts.statements(), asked);
    assert_eq!(fresh.retention, Duration::from_secs(24 * 60 * 60));
}

#[tokio::test(start_paused = true)]
async fn a_missing_name_is_not_looked_up_again_for_a_while() {
    let (registry, counts) = registry();
    assert_eq!(registry.by_name("nowhere").await, Err(not_found("nowhere")));
    let asked = counts.statements();
    for _ in 0..10 {
        assert_eq!(registry.by_name("nowhere").await, Err(not_found("nowhere")));
    }
    assert_eq!(counts.statements(), asked);
    tokio::time::advance(MISSING_FOR).await;
    assert_eq!(registry.by_name("nowhere").await, Err(not_found("nowhere")));
    assert!(counts.statements() > asked);
}

#[tokio::test(start_paused = true)]
async fn a_retired_namespace_gives_its_name_away_at_once() {
    let (registry, _) = registry();
    let before = registry.register(id(1), initial_record("orders", 3600, "here")).await.unwrap();
    let retired = registry.retire(before.id).await.unwrap();
    assert_eq!(retired.name, format!("orders-deleted-{}", &before.id.to_string()[..5]));
    assert_eq!(retired.state, NamespaceState::Deleted);
    assert_eq!(registry.retire(before.id).await.unwrap(), retired, "doing it again changes nothing");
    assert_eq!(registry.by_name("orders").await, Err(not_found("orders")));
    let after = registry.register(id(2), initial_record("orders", 3600, "here")).await.unwrap();
    assert_ne!(after.id, before.id);
    registry.remove(before.id).await.unwrap();
    assert_eq!(registry.by_name(&retired.name).await, Err(not_found(&retired.name)));
    assert_eq!(registry.by_name("orders").await.unwrap(), after);
}

#[tokio::test(start_paused = true)]
async fn own_writes_are_seen_at_once() {
    let (registry, _) = registry();
    assert_eq!(registry.by_name("orders").await, Err(not_found("orders")));
    registry.register(id(3), initial_record("orders", 3600, "here")).await.unwrap();
    let before = registry.by_name("orders").await.unwrap();
    let again = registry.register(id(4), initial_record("orders", 3600, "here")).await;
    assert_eq!(again, Err(ServiceError::NamespaceAlreadyExists { namespace: "orders".into() }));

    let describe =
        |record: &record::Namespace| Ok(Some(record::Namespace { description: "new".into(), ..record.clone() }));
    registry.change("orders", describe).await.unwrap();
    assert_eq!(registry.by_id(before.id).await.unwrap().record.description, "new");
    assert_eq!(registry.by_name("orders").await.unwrap().record.description, "new");
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_does_not_bring_back_what_was_replaced() {
    let (registry, _) = registry();
    registry.ensure(&["orders".into()], "here").await.unwrap();
    let slow = registry.store.get_by_name("orders").await.unwrap().unwrap();
    let describe =
        |record: &record::Namespace| Ok(Some(record::Namespace { description: "new".into(), ..record.clone() }));
    registry.change("orders", describe).await.unwrap();
    registry.keep(slow);
    assert_eq!(registry.by_name("orders").await.unwrap().record.description, "new");
}

#[tokio::test(start_paused = true)]
async fn changes_at_once_all_count() {
    let (registry, _) = registry();
    registry.ensure(&["orders".into()], "here").await.unwrap();
    let add = |key: &'static str| {
        registry.change("orders", move |record: &record::Namespace| {
            let mut changed = record.clone();
            changed.data.insert(key.into(), String::new());
            Ok(Some(changed))
        })
    };
    let (first, second, third) = tokio::join!(add("a"), add("b"), add("c"));
    first.and(second).and(third).unwrap();
    assert_eq!(registry.read_by_name("orders").await.unwrap().record.data.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_initial_namespaces_are_made_once() {
    let (registry, _) = registry();
    registry.ensure(&["orders".into()], "here").await.unwrap();
    let before = registry.by_name(SYSTEM_NAMESPACE).await.unwrap();
    registry.ensure(&["orders".into(), "more".into()], "here").await.unwrap();
    assert_eq!(registry.read_by_name(SYSTEM_NAMESPACE).await.unwrap(), before);
    let (all, next) = registry.list(10, usize::MAX, &[]).await.unwrap();
    assert_eq!((all.len(), next.is_empty()), (3, true));
}

#[tokio::test(start_paused = true)]
async fn a_page_of_namespaces_ends_by_bytes_and_the_next_one_goes_on() {
    const N: usize = 150;
    let (registry, _) = registry();
    for n in 0..N {
        let name = format!("n{n}");
        let record = record::Namespace { description: "x".repeat(10_000), ..initial_record(&name, 3600, "here") };
        registry.register(NamespaceId(registry.env.new_uuid()), record).await.unwrap();
    }
    let (mut names, mut token, mut n_pages) = (std::collections::BTreeSet::new(), Bytes::new(), 0);
    loop {
        let (page, next) = registry.list(100, 250_000, &token).await.unwrap();
        let bytes: usize = page.iter().map(|namespace| namespace.record.encoded_len()).sum();
        assert!((1..=250_000).contains(&bytes), "{bytes}");
        n_pages += 1;
        for namespace in page {
            assert!(names.insert(namespace.name.clone()), "{} is told twice", namespace.name);
        }
        if next.is_empty() {
            break;
        }
        token = next;
    }
    assert_eq!((names.len(), n_pages), (N, 7), "24 a page");
}

#[tokio::test(start_paused = true)]
async fn names_that_are_missing_are_remembered_by_their_bytes() {
    let (registry, _) = registry();
    for n in 0..500 {
        let name = format!("{n}{}", "x".repeat(100_000));
        registry.by_name(&name).await.unwrap_err();
    }
    registry.missing.run_pending_tasks();
    assert!(registry.missing.weighted_size() <= MISSING_BYTES, "{}", registry.missing.weighted_size());
}
