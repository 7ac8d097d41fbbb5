//! One record per cluster, changed by compare-and-set; one row per node that lives.

use persistence::error::StoreError;
use persistence::model::Fault;
use persistence::stores::cluster::StoredMember;
use proto::everrow::record;
use proto::temporal::api::enums::v1::IndexedValueType;
use uuid::Uuid;
use workflow::Timestamp;

use super::{benches, on_model};

fn cluster(n_shards: i32) -> record::Cluster {
    let types = [("Customer".to_owned(), IndexedValueType::Keyword.into())].into_iter().collect();
    let index = record::SearchAttributes { types };
    record::Cluster {
        cluster_id: Uuid::new_v4().as_bytes().to_vec().into(),
        n_shards,
        failover_version_increment: 10,
        initial_failover_version: 1,
        is_global_namespace_enabled: true,
        is_connection_enabled: true,
        address: "localhost:7233".to_owned(),
        http_address: "localhost:7243".to_owned(),
        search_attributes: [("default".to_owned(), index)].into_iter().collect(),
        tags: [("zone".to_owned(), "a".to_owned())].into_iter().collect(),
    }
}

#[tokio::test]
async fn the_first_record_of_a_cluster_stays() {
    for bench in benches() {
        let store = &bench.stores.cluster;
        assert_eq!(store.get("here").await.unwrap(), None);
        let first = cluster(4);
        assert_eq!(store.get_or_create("here", first.clone()).await.unwrap(), first);
        assert_eq!(store.get_or_create("here", cluster(8)).await.unwrap(), first);
        let stored = store.get("here").await.unwrap().unwrap();
        assert_eq!((stored.name.as_str(), stored.version, stored.record), ("here", 1, first));
    }
}

#[tokio::test]
async fn of_many_first_starts_one_decides_what_the_cluster_is() {
    for fault in [Fault::TimeoutApplied, Fault::AppliedLater] {
        let (model, stores) = on_model();
        model.inject(fault);
        let starts: Vec<_> = (1..=4)
            .map(|n_shards| {
                let store = stores.cluster.clone();
                tokio::spawn(async move { store.get_or_create("here", cluster(n_shards)).await.unwrap() })
            })
            .collect();
        let mut seen = Vec::new();
        for start in starts {
            seen.push(start.await.unwrap());
        }
        let stored = stores.cluster.get("here").await.unwrap().unwrap().record;
        assert!(seen.iter().all(|record| *record == stored), "{fault:?}");
    }
}

#[tokio::test]
async fn a_cluster_changes_only_from_the_version_that_was_read() {
    for bench in benches() {
        let store = &bench.stores.cluster;
        assert_eq!(store.update("there", None, &cluster(1)).await.unwrap(), 1);
        assert!(matches!(store.update("there", None, &cluster(1)).await, Err(StoreError::Refused(_))));
        let second = cluster(2);
        assert_eq!(store.update("there", Some(1), &second).await.unwrap(), 2);
        assert!(matches!(store.update("there", Some(1), &cluster(3)).await, Err(StoreError::Refused(_))));
        store.update("here", None, &cluster(1)).await.unwrap();
        let names: Vec<_> = store.list().await.unwrap().into_iter().map(|cluster| cluster.name).collect();
        assert_eq!(names, ["here", "there"]);
        assert_eq!(store.get("there").await.unwrap().unwrap().record, second);

        assert!(matches!(store.remove("there", 1).await, Err(StoreError::Refused(_))));
        store.remove("there", 2).await.unwrap();
        assert_eq!(store.get("there").await.unwrap(), None);
    }
}

#[tokio::test]
async fn members_are_those_that_beat_and_did_not_leave() {
    for bench in benches() {
        let store = &bench.stores.cluster;
        let record = record::Member {
            cluster_id: Uuid::new_v4().as_bytes().to_vec().into(),
            address: "10.0.0.1:7234".to_owned(),
            services: vec!["history".to_owned(), "matching".to_owned()],
            started_at: 5,
            version: "0.1.0".to_owned(),
            is_draining: true,
        };
        let hosts = [1, 2, 3].map(Uuid::from_u128);
        for host_id in hosts {
            store.heartbeat(host_id, Timestamp(1), &record).await.unwrap();
        }
        store.heartbeat(hosts[1], Timestamp(9), &record).await.unwrap();
        store.leave(hosts[2]).await.unwrap();
        store.leave(hosts[2]).await.unwrap();
        let member = |host_id, at| StoredMember { host_id, heartbeat_at: Timestamp(at), record: record.clone() };
        assert_eq!(store.members().await.unwrap(), [member(hosts[0], 1), member(hosts[1], 9)]);
    }
}
