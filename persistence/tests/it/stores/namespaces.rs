//! A namespace has one name and one id, and both always lead to the same record.

use persistence::error::StoreError;
use persistence::model::Fault;
use persistence::stores::namespaces::{NamespaceStore, StoredNamespace};
use proto::everrow::record;
use proto::temporal::api::enums::v1::{ArchivalState, NamespaceState};
use proto::temporal::api::namespace::v1::{BadBinaries, BadBinaryInfo};
use uuid::Uuid;
use workflow::NamespaceId;

use super::{benches, on_model};

fn new_id() -> NamespaceId {
    NamespaceId(Uuid::new_v4())
}

fn named(name: &str) -> record::Namespace {
    record::Namespace { name: name.to_owned(), ..Default::default() }
}

fn full(name: &str) -> record::Namespace {
    let map = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into_iter().collect();
    let active = record::ActiveCluster { cluster: "east".to_owned(), failover_version: 12 };
    let by_value = record::ActiveClustersByValue { values: [("eu".to_owned(), active)].into_iter().collect() };
    let bad = BadBinaryInfo { reason: "crashes".to_owned(), ..Default::default() };
    record::Namespace {
        name: name.to_owned(),
        state: NamespaceState::Deprecated.into(),
        description: "what it is for".to_owned(),
        owner_email: "owner@example.com".to_owned(),
        data: map("team", "red"),
        retention: Some(prost_types::Duration { seconds: 86400, nanos: 5 }),
        history_archival_state: ArchivalState::Enabled.into(),
        history_archival_uri: "file:///history".to_owned(),
        visibility_archival_state: ArchivalState::Disabled.into(),
        visibility_archival_uri: "file:///visibility".to_owned(),
        bad_binaries: Some(BadBinaries { binaries: [("abc".to_owned(), bad)].into_iter().collect() }),
        custom_search_attribute_aliases: map("Keyword01", "Customer"),
        is_global: true,
        active_cluster: "east".to_owned(),
        clusters: vec!["east".to_owned(), "west".to_owned()],
        failover_version: 11,
        failover_notification_version: 9,
        config_version: 3,
        failover_history: vec![record::Failover { at: 77, failover_version: 11 }],
        active_clusters: Some(record::ActiveClusters {
            attributes: [("region".to_owned(), by_value)].into_iter().collect(),
        }),
    }
}

async fn check_found(store: &NamespaceStore, expected: &StoredNamespace) {
    let by_id = store.get_by_id(expected.id).await.unwrap();
    assert_eq!(by_id.as_ref(), Some(expected));
    let by_name = store.get_by_name(&expected.record.name).await.unwrap();
    assert_eq!(by_name.as_ref(), Some(expected));
}

#[tokio::test]
async fn a_namespace_is_found_by_id_and_by_name() {
    for bench in benches() {
        let store = &bench.stores.namespaces;
        assert_eq!(store.get_by_name("one").await.unwrap(), None);
        assert_eq!(store.get_by_id(new_id()).await.unwrap(), None);
        let one = store.create(new_id(), full("one")).await.unwrap();
        let two = store.create(new_id(), named("two")).await.unwrap();
        assert_eq!((one.version, two.version), (1, 2));
        check_found(store, &one).await;
        check_found(store, &two).await;
        assert_eq!(store.notification_version().await.unwrap(), 2);
    }
}

#[tokio::test]
async fn a_name_or_an_id_is_taken_once() {
    for bench in benches() {
        let store = &bench.stores.namespaces;
        let one = store.create(new_id(), named("one")).await.unwrap();
        for (id, name) in [(new_id(), "one"), (one.id, "two"), (one.id, "other")] {
            let refused = store.create(id, named(name)).await;
            assert!(matches!(refused, Err(StoreError::Refused(_))), "{name}: {refused:?}");
        }
        check_found(store, &one).await;
        assert_eq!(store.notification_version().await.unwrap(), 1);
    }
}

#[tokio::test]
async fn an_update_needs_the_version_that_was_read() {
    for bench in benches() {
        let store = &bench.stores.namespaces;
        let first = store.create(new_id(), named("one")).await.unwrap();
        let other = store.create(new_id(), named("other")).await.unwrap();
        let second = store.update(first.id, first.version, full("one")).await.unwrap();
        assert_eq!(second.version, 3);
        check_found(store, &second).await;
        let stale = store.update(first.id, first.version, named("one")).await;
        assert!(matches!(stale, Err(StoreError::Refused(_))), "{stale:?}");
        check_found(store, &second).await;
        check_found(store, &other).await;
    }
}

#[tokio::test]
async fn a_new_name_frees_the_old_one() {
    for bench in benches() {
        let store = &bench.stores.namespaces;
        let first = store.create(new_id(), named("one")).await.unwrap();
        store.create(new_id(), named("taken")).await.unwrap();
        let taken = store.update(first.id, first.version, named("taken")).await;
        assert!(matches!(taken, Err(StoreError::Refused(_))), "{taken:?}");
        let renamed = store.update(first.id, first.version, named("uno")).await.unwrap();
        check_found(store, &renamed).await;
        assert_eq!(store.get_by_name("one").await.unwrap(), None);
        let again = store.create(new_id(), named("one")).await.unwrap();
        check_found(store, &again).await;

        store.delete(renamed.id).await.unwrap();
        store.delete(renamed.id).await.unwrap();
        assert_eq!(store.get_by_id(renamed.id).await.unwrap(), None);
        assert_eq!(store.get_by_name("uno").await.unwrap(), None);
        check_found(store, &again).await;
    }
}

#[tokio::test]
async fn pages_of_any_size_list_every_namespace_once() {
    for bench in benches() {
        let store = &bench.stores.namespaces;
        let mut expected = Vec::new();
        for index in 0..7 {
            expected.push(store.create(new_id(), named(&format!("n{index}"))).await.unwrap());
        }
        expected.sort_by_key(|namespace| namespace.id);
        for limit in [1, 2, 3, 7, 100] {
            let mut listed = Vec::new();
            let mut token = bytes::Bytes::new();
            loop {
                let (page, next) = store.list(limit, &token).await.unwrap();
                assert!(page.len() <= limit);
                listed.extend(page);
                token = next;
                if token.is_empty() {
                    break;
                }
            }
            assert_eq!(listed, expected, "pages of {limit}");
        }
        store.list(10, b"\xffnot ours").await.unwrap();
    }
}

#[tokio::test]
async fn an_unknown_outcome_of_a_creation_is_settled_by_the_id() {
    for fault in [Fault::TimeoutApplied, Fault::TimeoutNotApplied, Fault::AppliedLater] {
        let (model, stores) = on_model();
        model.inject(fault);
        let created = stores.namespaces.create(new_id(), full("one")).await.unwrap();
        check_found(&stores.namespaces, &created).await;
    }
}

#[tokio::test]
async fn changes_of_many_namespaces_at_once_all_get_a_version_of_their_own() {
    let (_, stores) = on_model();
    let creations: Vec<_> = (0..8)
        .map(|index| {
            let store = stores.namespaces.clone();
            tokio::spawn(async move { store.create(new_id(), named(&format!("n{index}"))).await.unwrap().version })
        })
        .collect();
    let mut versions = Vec::new();
    for creation in creations {
        versions.push(creation.await.unwrap());
    }
    versions.sort_unstable();
    assert_eq!(versions, (1..=8).collect::<Vec<_>>());
}
