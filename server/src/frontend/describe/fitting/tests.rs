//! What is left out of a description, and that what is left fits.

use proto::temporal::api::common::v1::{Payload, Payloads};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::workflow::v1::PendingChildExecutionInfo;

use super::*;

fn details(bytes: usize) -> Option<Payloads> {
    Some(Payloads { payloads: vec![Payload { data: vec![0; bytes].into(), ..Default::default() }] })
}

fn described(n: usize, heartbeat: usize, failure: usize) -> DescribeWorkflowExecutionResponse {
    let last_failure = Some(Failure { message: "x".repeat(failure), ..Default::default() });
    let activity =
        PendingActivityInfo { heartbeat_details: details(heartbeat), last_failure, ..PendingActivityInfo::default() };
    DescribeWorkflowExecutionResponse { pending_activities: vec![activity; n], ..Default::default() }
}

#[test]
fn a_description_that_fits_is_left_as_it_is() {
    let mut fits = described(100, 1000, 1000);
    let before = fits.clone();
    fit(&mut fits);
    assert_eq!(fits, before);
}

#[test]
fn large_details_go_before_failures_and_those_before_items() {
    let mut large = described(10, 1 << 20, 1000);
    large.pending_activities[0].heartbeat_details = details(10);
    fit(&mut large);
    assert!(large.encoded_len() <= ANSWER_BYTES_MAX);
    assert!(large.pending_activities[0].heartbeat_details.is_some(), "small ones stay");
    assert!(large.pending_activities.iter().all(|activity| activity.last_failure.is_some()));

    let mut failures = described(2000, 10, 4000);
    fit(&mut failures);
    assert!(failures.encoded_len() <= ANSWER_BYTES_MAX);
    assert_eq!(failures.pending_activities.len(), 2000);

    let child = PendingChildExecutionInfo { workflow_id: "x".repeat(1000), ..Default::default() };
    let mut children = DescribeWorkflowExecutionResponse { pending_children: vec![child; 6000], ..Default::default() };
    fit(&mut children);
    assert!(children.encoded_len() <= ANSWER_BYTES_MAX);
    assert!(!children.pending_children.is_empty());
}
