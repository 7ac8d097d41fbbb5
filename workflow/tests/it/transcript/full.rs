//! Requests and commands in which every field is set, so that one that is lost shows.

use std::collections::HashMap;

use proto::temporal::api::command::v1::Command;
use proto::temporal::api::common::v1::callback::{Nexus, Variant as CallbackVariant};
use proto::temporal::api::common::v1::link::{Variant as LinkVariant, WorkflowEvent};
use proto::temporal::api::common::v1::{
    Callback, Header, Link, Memo, Payload, Priority, RetryPolicy, SearchAttributes, WorkerVersionStamp,
    WorkflowExecution,
};
use proto::temporal::api::sdk::v1::event_group_marker::{Label, Variant as MarkerVariant};
use proto::temporal::api::sdk::v1::{EventGroupMarker, UserMetadata};
use uuid::Uuid;
use workflow::{Sender, Signal, Start};

use crate::others::parent;
use crate::run::{SECOND, failure, payloads, plain_start, span};

pub(super) fn payload(text: &'static str) -> Payload {
    Payload { data: text.into(), ..Default::default() }
}

fn field(name: &str, text: &'static str) -> HashMap<String, Payload> {
    HashMap::from([(name.to_owned(), payload(text))])
}

pub(super) fn header(text: &'static str) -> Option<Header> {
    Some(Header { fields: field("header", text) })
}

pub(super) fn memo(text: &'static str) -> Option<Memo> {
    Some(Memo { fields: field("memo", text) })
}

pub(super) fn search_attributes(text: &'static str) -> Option<SearchAttributes> {
    Some(SearchAttributes { indexed_fields: field("CustomText", text) })
}

pub(super) fn links(workflow_id: &str) -> Vec<Link> {
    let event = WorkflowEvent {
        namespace: "here".to_owned(),
        workflow_id: workflow_id.to_owned(),
        run_id: Uuid::from_u128(77).to_string(),
        reference: None,
    };
    vec![Link { variant: Some(LinkVariant::WorkflowEvent(event)) }]
}

pub(super) fn callback(url: &str) -> Callback {
    let nexus = Nexus { url: url.to_owned(), header: HashMap::from([("token".to_owned(), "t".to_owned())]) };
    Callback { links: links("callback"), variant: Some(CallbackVariant::Nexus(nexus)) }
}

pub(super) fn priority(priority_key: i32) -> Option<Priority> {
    Some(Priority { priority_key, fairness_key: "tenant".to_owned(), fairness_weight: 2.5 })
}

pub(super) fn policy(maximum_attempts: i32) -> Option<RetryPolicy> {
    Some(RetryPolicy {
        initial_interval: span(2 * SECOND),
        backoff_coefficient: 3.0,
        maximum_interval: span(10 * SECOND),
        maximum_attempts,
        non_retryable_error_types: vec!["Fatal".to_owned()],
    })
}

pub(super) fn user_metadata() -> Option<UserMetadata> {
    Some(UserMetadata { summary: Some(payload("summary")), details: Some(payload("details")) })
}

pub(super) fn stamp(build_id: &str) -> Option<WorkerVersionStamp> {
    Some(WorkerVersionStamp { build_id: build_id.to_owned(), use_versioning: false })
}

/// A command with all that its worker may write beside it.
pub(super) fn annotated(command: Command) -> Command {
    let label = Label { id: "group".to_owned(), label: Some(payload("label")) };
    let markers = vec![EventGroupMarker { variant: Some(MarkerVariant::Label(label)) }];
    Command { user_metadata: user_metadata(), event_group_markers: markers, ..command }
}

/// The parent of `others::parent` as the sender of something.
pub(super) fn sender(child_only: bool) -> Option<Sender> {
    Some(Sender { execution: parent().execution, initiated_event_id: 12, child_only })
}

pub(super) fn other_execution(workflow_id: &str) -> WorkflowExecution {
    WorkflowExecution { workflow_id: workflow_id.to_owned(), run_id: Uuid::from_u128(60).to_string() }
}

pub(super) fn signal(request_id: &str) -> Signal {
    Signal {
        name: "go".to_owned(),
        input: Some(payloads("signal")),
        header: header("of the signal"),
        identity: "client".to_owned(),
        request_id: request_id.to_owned(),
        links: links("signaler"),
        sender: sender(false),
    }
}

/// A start in which everything is set that can be set together.
pub(super) fn start() -> Start {
    Start {
        header: header("of the start"),
        execution_timeout: Some(3600 * SECOND),
        run_timeout: Some(600 * SECOND),
        task_timeout: 7 * SECOND,
        retry_policy: policy(3),
        memo: memo("of the start"),
        search_attributes: search_attributes("\"of the start\""),
        start_delay: Some(5 * SECOND),
        continued_failure: Some(failure("before")),
        last_completion_result: Some(payloads("last result")),
        user_metadata: user_metadata(),
        links: links("starter"),
        priority: priority(2),
        callbacks: vec![callback("http://first")],
        schedule_id: Some("nightly".into()),
        signal: Some(signal("with-start")),
        ..plain_start()
    }
}
