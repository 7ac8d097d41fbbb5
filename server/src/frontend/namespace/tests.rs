//! What an update makes of a record.

use cluster::errors::ServiceError;
use prost_types::Duration;
use proto::everrow::record;
use proto::temporal::api::enums::v1::NamespaceState::{self, Deleted, Deprecated, Registered};
use proto::temporal::api::enums::v1::ReplicationState;
use proto::temporal::api::namespace::v1::{BadBinaries, BadBinaryInfo, NamespaceConfig, UpdateNamespaceInfo};
use proto::temporal::api::replication::v1::{ClusterReplicationConfig, NamespaceReplicationConfig};
use proto::temporal::api::workflowservice::v1 as public;
use workflow::Timestamp;

use super::changes;

const NOW: Timestamp = Timestamp(1_000_000_000);

fn orders() -> record::Namespace {
    let request = public::RegisterNamespaceRequest {
        namespace: "orders".into(),
        workflow_execution_retention_period: Some(Duration { seconds: 86_400, nanos: 0 }),
        ..Default::default()
    };
    changes::registered(request, "here").unwrap()
}

fn update(spoil: impl FnOnce(&mut public::UpdateNamespaceRequest)) -> Result<Option<record::Namespace>, ServiceError> {
    let mut request = public::UpdateNamespaceRequest { namespace: "orders".into(), ..Default::default() };
    spoil(&mut request);
    changes::updated(&orders(), &request, "here", NOW)
}

fn with_config(config: NamespaceConfig) -> Result<Option<record::Namespace>, ServiceError> {
    update(|request| request.config = Some(config))
}

fn with_replication(config: NamespaceReplicationConfig) -> Result<Option<record::Namespace>, ServiceError> {
    update(|request| request.replication_config = Some(config))
}

#[track_caller]
fn refused(answer: Result<Option<record::Namespace>, ServiceError>, message: &str) {
    assert_eq!(answer, Err(ServiceError::InvalidArgument(message.into())));
}

#[test]
fn an_update_of_nothing_writes_nothing() {
    assert_eq!(update(|_| {}), Ok(None));
    assert_eq!(with_config(NamespaceConfig::default()), Ok(None));
}

#[test]
fn a_change_of_the_configuration_counts() {
    let changed = update(|request| {
        request.update_info = Some(UpdateNamespaceInfo { description: "all".into(), ..Default::default() });
    });
    let changed = changed.unwrap().unwrap();
    assert_eq!((changed.description.as_str(), changed.config_version), ("all", 1));
}

#[test]
fn a_state_only_moves_towards_its_end() {
    let allowed = [(Registered, Deprecated), (Registered, Deleted), (Deprecated, Deleted)];
    for from in [Registered, Deprecated, Deleted] {
        for to in [Registered, Deprecated, Deleted] {
            let record = record::Namespace { state: from.into(), ..orders() };
            let request = public::UpdateNamespaceRequest {
                update_info: Some(UpdateNamespaceInfo { state: to.into(), ..Default::default() }),
                ..Default::default()
            };
            let answer = changes::updated(&record, &request, "here", NOW);
            if from == to {
                assert_eq!(answer, Ok(None));
            } else if allowed.contains(&(from, to)) {
                assert_eq!(answer.unwrap().unwrap().state(), to);
            } else {
                refused(answer, "Invalid namespace state update.");
            }
        }
    }
    assert_eq!(changes::deprecated(&orders()).state(), NamespaceState::Deprecated);
}

#[test]
fn bad_binaries_are_merged_up_to_a_limit_and_deleted_by_name() {
    let bad = |names: std::ops::Range<i32>| NamespaceConfig {
        bad_binaries: Some(BadBinaries {
            binaries: names.map(|name| (name.to_string(), BadBinaryInfo::default())).collect(),
        }),
        ..Default::default()
    };
    let changed = with_config(bad(0..10)).unwrap().unwrap();
    assert_eq!(changed.bad_binaries.unwrap().binaries["3"].create_time, Some(NOW.into()));
    refused(with_config(bad(0..11)), "Total resetBinaries cannot exceed the max limit: 10");
    refused(update(|request| request.delete_bad_binary = "x".into()), "Bad binary checksum x doesn't exists.");
}

#[test]
fn an_alias_is_given_once_and_taken_away_by_an_empty_one() {
    let alias = |field: &str, name: &str| NamespaceConfig {
        custom_search_attribute_aliases: [(field.to_owned(), name.to_owned())].into(),
        ..Default::default()
    };
    let record = with_config(alias("Keyword01", "Customer")).unwrap().unwrap();
    let again = |config| {
        let request = public::UpdateNamespaceRequest { config: Some(config), ..Default::default() };
        changes::updated(&record, &request, "here", NOW)
    };
    assert_eq!(again(alias("Keyword02", "Customer")), Ok(None));
    refused(again(alias("Keyword01", "Order")), "Custom search attribute field name already allocated.");
    assert!(again(alias("Keyword01", "")).unwrap().unwrap().custom_search_attribute_aliases.is_empty());
}

#[test]
fn a_namespace_of_one_cluster_stays_in_it() {
    let mars = || ClusterReplicationConfig { cluster_name: "mars".into(), ..Default::default() };
    let active = NamespaceReplicationConfig { active_cluster_name: "mars".into(), ..Default::default() };
    refused(with_replication(active), "Invalid cluster name: mars");
    let clusters = NamespaceReplicationConfig { clusters: vec![mars()], ..Default::default() };
    refused(with_replication(clusters), "Invalid cluster name: mars");
    let handover = NamespaceReplicationConfig { state: ReplicationState::Handover.into(), ..Default::default() };
    refused(with_replication(handover), "Handover can only be set for global namespace");
    refused(
        update(|request| request.promote_namespace = true),
        "global namespace is not enabled on this cluster, cannot update global namespace or promote local namespace: \
         orders",
    );
}
