//! Endpoints change only if the whole list is as the caller saw it.

use persistence::error::StoreError;
use proto::everrow::record;
use proto::temporal::api::nexus::v1::EndpointSpec;
use uuid::Uuid;

use super::benches;

fn endpoint(name: &str) -> record::NexusEndpoint {
    let spec = EndpointSpec { name: name.to_owned(), ..Default::default() };
    record::NexusEndpoint { spec: Some(spec), created_at: 7, modified_at: Some(8) }
}

#[tokio::test]
async fn endpoints_are_created_updated_deleted_and_listed() {
    for bench in benches() {
        let store = &bench.stores.nexus_endpoints;
        let ids = [1, 2, 3].map(Uuid::from_u128);
        assert_eq!(store.table_version().await.unwrap(), 0);
        for (version, id) in (0..).zip(ids) {
            store.create(version, id, endpoint("e")).await.unwrap();
        }
        let updated = store.update(3, ids[1], 1, endpoint("f")).await.unwrap();
        assert_eq!(updated.version, 2);
        assert_eq!(store.get(ids[1]).await.unwrap(), Some(updated.clone()));
        store.delete(4, ids[0], 1).await.unwrap();
        assert_eq!(store.get(ids[0]).await.unwrap(), None);

        let page = store.list(None, 1).await.unwrap();
        assert_eq!((page.table_version, page.endpoints, page.has_more), (5, vec![updated], true));
        let rest = store.list(Some(ids[1]), 10).await.unwrap();
        assert_eq!((rest.endpoints.len(), rest.endpoints[0].id, rest.has_more), (1, ids[2], false));
    }
}

#[tokio::test]
async fn an_old_table_version_or_an_old_endpoint_is_refused() {
    for bench in benches() {
        let store = &bench.stores.nexus_endpoints;
        let id = Uuid::from_u128(1);
        store.create(0, id, endpoint("e")).await.unwrap();
        let refused = [
            store.create(0, Uuid::from_u128(2), endpoint("f")).await.map(|_| ()),
            store.create(1, id, endpoint("f")).await.map(|_| ()),
            store.update(0, id, 1, endpoint("f")).await.map(|_| ()),
            store.update(1, id, 2, endpoint("f")).await.map(|_| ()),
            store.delete(0, id, 1).await,
            store.delete(1, id, 2).await,
        ];
        for outcome in refused {
            assert!(matches!(outcome, Err(StoreError::Refused(_))), "{outcome:?}");
        }
        assert_eq!(store.get(id).await.unwrap().unwrap().record, endpoint("e"));
        assert_eq!(store.table_version().await.unwrap(), 1);
    }
}
