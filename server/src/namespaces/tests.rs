//! What the registry remembers, and what it asks the store.

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
    let (all, next) = registry.list(10, &[]).await.unwrap();
    assert_eq!((all.len(), next.is_empty()), (3, true));
}
