//! Size limits of a submission.

use std::time::Duration;

use proto::temporal::api::common::v1::{Payload, Payloads, RetryPolicy};
use uuid::Uuid;
use workflow::{ExecutionKey, Facts, Limits, NamespaceId, RunId, Start, Timestamp};

use super::*;

fn payloads(bytes: usize) -> Payloads {
    Payloads { payloads: vec![Payload { data: vec![7; bytes].into(), ..Default::default() }] }
}

/// A run that keeps its input, for it may be retried.
fn started_with(input: usize) -> Transition {
    let start = Start {
        workflow_type: "large".into(),
        task_queue: "large".into(),
        input: Some(payloads(input)),
        header: None,
        execution_timeout: None,
        run_timeout: None,
        task_timeout: Duration::ZERO,
        identity: String::new(),
        request_id: "start".into(),
        retry_policy: Some(RetryPolicy { maximum_attempts: 2, ..Default::default() }),
        cron_schedule: String::new(),
        memo: None,
        search_attributes: None,
        start_delay: None,
        continued_failure: None,
        last_completion_result: None,
        user_metadata: None,
        links: Vec::new(),
        priority: None,
        callbacks: Vec::new(),
        parent: None,
        schedule_id: None,
        is_eager: false,
        signal: None,
    };
    let key = ExecutionKey {
        namespace_id: NamespaceId(Uuid::from_u128(1)),
        workflow_id: "large".into(),
        run_id: RunId(Uuid::from_u128(2)),
    };
    let facts = Facts {
        now: Timestamp(0),
        failover_version: 0,
        new_run_id: RunId(Uuid::from_u128(3)),
        new_request_id: Uuid::from_u128(4),
        retention: Duration::from_secs(60),
        segment: 0,
        limits: Limits::default(),
    };
    *workflow::start(key, start, None, &facts).expect("the core starts it")
}

fn refusal(transitions: &[&Transition]) -> String {
    check(transitions.iter().copied()).expect_err("too large").to_string()
}

#[test]
fn what_fits_one_batch_is_let_through() {
    let large = started_with(5 << 20);
    assert_eq!(check([&large]), Ok(()));
    assert_eq!(check([&large, &started_with(6 << 20)]), Ok(()));
}

#[test]
fn runs_that_change_together_and_do_not_fit_one_batch_are_refused() {
    let large = started_with(5 << 20);
    let message = refusal(&[&large, &large, &large]);
    assert!(message.ends_with("exceeds limit of 12582912 bytes"), "{message}");
}

#[test]
fn an_event_that_does_not_fit_a_node_is_refused() {
    let message = refusal(&[&started_with(9 << 20)]);
    assert!(message.ends_with("exceeds limit of 8388608 bytes"), "{message}");
}
