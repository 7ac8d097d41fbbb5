//! Tables of requests and the client's errors.

#![expect(deprecated, reason = "older clients still send these fields")]

use cluster::search_attributes::check::Defined;
use cluster::search_attributes::custom::CustomAttributes;
use proto::temporal::api::common::v1::callback::{Nexus, Variant};
use proto::temporal::api::common::v1::{
    Callback, Link, Memo, Payload, Payloads, Priority, RetryPolicy, SearchAttributes, WorkflowType,
};
use proto::temporal::api::enums::v1::{TaskQueueKind, WorkflowIdConflictPolicy, WorkflowIdReusePolicy};
use proto::temporal::api::taskqueue::v1::TaskQueue;

use super::*;

/// A namespace without search attributes of its own.
fn undefined() -> Defined<'static> {
    static NONE: CustomAttributes = CustomAttributes::none();
    Defined { namespace: "default", custom: &NONE }
}

mod limits;
mod tokens;

fn long() -> String {
    "x".repeat(ID_BYTES_MAX + 1)
}

fn payloads(bytes: usize) -> Option<Payloads> {
    Some(Payloads { payloads: vec![Payload { data: vec![0; bytes].into(), ..Payload::default() }] })
}

fn seconds(seconds: i64) -> Option<Duration> {
    Some(Duration { seconds, nanos: 0 })
}

fn queue(name: &str) -> Option<TaskQueue> {
    Some(TaskQueue { name: name.into(), ..TaskQueue::default() })
}

fn run(workflow_id: &str, run_id: &str) -> Option<WorkflowExecution> {
    Some(WorkflowExecution { workflow_id: workflow_id.into(), run_id: run_id.into() })
}

fn proper_start() -> public::StartWorkflowExecutionRequest {
    public::StartWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_id: "order-7".into(),
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: queue("orders"),
        ..Default::default()
    }
}

fn proper_signal_with_start() -> public::SignalWithStartWorkflowExecutionRequest {
    public::SignalWithStartWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_id: "order-7".into(),
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: queue("orders"),
        signal_name: "paid".into(),
        ..Default::default()
    }
}

/// The whole message that is expected, and what is done to a proper request to earn it.
type Case<'a, R> = (&'a str, &'a dyn Fn(&mut R));

#[track_caller]
fn check<R: Clone>(proper: &R, validate: impl Fn(R) -> Result<R, ServiceError>, cases: &[Case<'_, R>]) {
    assert!(validate(proper.clone()).is_ok(), "the proper request passes");
    for (message, spoil) in cases {
        let mut request = proper.clone();
        spoil(&mut request);
        match validate(request) {
            Err(ServiceError::InvalidArgument(told)) => assert_eq!(told, *message),
            Err(other) => assert_eq!(other.to_string(), *message),
            Ok(_) => panic!("accepted in spite of: {message}"),
        }
    }
}

#[test]
fn a_start_is_refused_in_the_words_of_the_reference() {
    check(
        &proper_start(),
        |request| start::start(request, undefined(), || "generated".into()),
        &[
            ("WorkflowId is not set on request.", &|r| r.workflow_id.clear()),
            ("WorkflowId exceeds maximum allowed length (1001/1000)", &|r| r.workflow_id = long()),
            ("WorkflowType is not set on request.", &|r| r.workflow_type = None),
            ("WorkflowType is not set on request.", &|r| r.workflow_type = Some(WorkflowType::default())),
            ("WorkflowType length exceeds limit.", &|r| r.workflow_type = Some(WorkflowType { name: long() })),
            ("taskQueue is not set", &|r| r.task_queue = None),
            ("missing task queue name", &|r| r.task_queue = queue("")),
            ("taskQueue length exceeds limit", &|r| r.task_queue = queue(&long())),
            ("task queue name cannot start with reserved prefix /_sys/", &|r| r.task_queue = queue("/_sys/orders/1")),
            ("cannot use internal per-namespace task queue:temporal-sys-per-ns-tq", &|r| {
                r.task_queue = queue("temporal-sys-per-ns-tq")
            }),
            ("An invalid WorkflowExecutionTimeoutSeconds is set on request. cause: negative duration", &|r| {
                r.workflow_execution_timeout = seconds(-1)
            }),
            ("An invalid WorkflowRunTimeoutSeconds is set on request. cause: negative duration", &|r| {
                r.workflow_run_timeout = seconds(-1)
            }),
            (
                "An invalid WorkflowTaskTimeoutSeconds is set on request. cause: duration has seconds and nanos with \
                 different signs",
                &|r| r.workflow_task_timeout = Some(Duration { seconds: 1, nanos: -1 }),
            ),
            ("An invalid WorkflowStartDelaySeconds is set on request. cause: negative duration", &|r| {
                r.workflow_start_delay = seconds(-1)
            }),
            ("CronSchedule and WorkflowStartDelay may not be used together.", &|r| {
                (r.cron_schedule, r.workflow_start_delay) = ("* * * * *".into(), seconds(1))
            }),
            ("invalid CronSchedule.", &|r| r.cron_schedule = "TZ=Nowhere * * * * *".into()),
        ],
    );
}

fn callback(url: &str) -> Callback {
    let nexus = Nexus { url: url.into(), ..Default::default() };
    Callback { variant: Some(Variant::Nexus(nexus)), ..Default::default() }
}

#[test]
fn what_comes_with_a_start_is_refused_in_the_words_of_the_reference() {
    check(
        &proper_start(),
        |request| start::start(request, undefined(), || "generated".into()),
        &[
            ("RequestId length exceeds limit.", &|r| r.request_id = long()),
            (
                "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING cannot be used together \
                 with a WorkflowIDConflictPolicy",
                &|r| {
                    r.set_workflow_id_reuse_policy(WorkflowIdReusePolicy::TerminateIfRunning);
                    r.set_workflow_id_conflict_policy(WorkflowIdConflictPolicy::Fail);
                },
            ),
            (
                "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE cannot be used together with \
                 WorkflowIdConflictPolicy WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING",
                &|r| {
                    r.set_workflow_id_reuse_policy(WorkflowIdReusePolicy::RejectDuplicate);
                    r.set_workflow_id_conflict_policy(WorkflowIdConflictPolicy::TerminateExisting);
                },
            ),
            ("priority key can't be negative", &|r| {
                r.priority = Some(Priority { priority_key: -1, ..Priority::default() });
            }),
            ("fairness key length exceeds limit", &|r| {
                r.priority = Some(Priority { fairness_key: "x".repeat(65), ..Priority::default() });
            }),
            ("must be greater than zero", &|r| {
                r.priority = Some(Priority { fairness_weight: -1.0, ..Priority::default() });
            }),
            ("cannot attach more than 10 links per request, got 11", &|r| r.links = vec![Link::default(); 11]),
            ("unsupported link variant", &|r| r.links = vec![Link::default()]),
            ("Blob data size exceeds limit.", &|r| r.input = payloads(sizes::BLOB_BYTES_MAX)),
            ("Memo size exceeds limit.", &|r| {
                let big = Payload { data: vec![0; sizes::MEMO_BYTES_MAX].into(), ..Payload::default() };
                r.memo = Some(Memo { fields: [("key".to_owned(), big)].into() });
            }),
            ("unknown callback variant: <nil>", &|r| r.completion_callbacks.push(Default::default())),
            ("cannot attach more than 32 callbacks to an execution", &|r| {
                r.completion_callbacks = vec![callback("http://here/done"); 33]
            }),
            ("invalid url: unknown scheme: ftp://here", &|r| r.completion_callbacks.push(callback("ftp://here"))),
            ("invalid url: missing host", &|r| r.completion_callbacks.push(callback("https:///done"))),
            ("invalid url: url length longer than max length allowed of 1000", &|r| {
                r.completion_callbacks.push(callback(&format!("http://{}", long())))
            }),
            ("invalid header: header size longer than max allowed size of 8192", &|r| {
                let mut large = callback("temporal://system");
                if let Some(Variant::Nexus(nexus)) = &mut large.variant {
                    nexus.header.insert("token".into(), "t".repeat(8192));
                }
                r.completion_callbacks.push(large);
            }),
            ("The Time-Skipping feature is not enabled for namespace.", &|r| {
                r.time_skipping_config = Some(Default::default());
            }),
        ],
    );
}

#[test]
fn a_signal_with_start_is_refused_in_the_words_of_the_reference() {
    check(
        &proper_signal_with_start(),
        |request| start::signal_with_start(request, undefined(), || "generated".into()),
        &[
            ("WorkflowId is not set on request.", &|r| r.workflow_id.clear()),
            ("signal not set", &|r| r.signal_name.clear()),
            ("signal name exceeds maximum allowed length (1001/1000)", &|r| r.signal_name = long()),
            ("workflow type not set", &|r| r.workflow_type = None),
            ("workflow type name exceeds maximum allowed length (1001/1000)", &|r| {
                r.workflow_type = Some(WorkflowType { name: long() });
            }),
            ("taskQueue is not set", &|r| r.task_queue = None),
            ("Request ID exceeds maximum allowed length (1001/1000)", &|r| r.request_id = long()),
            (
                "Invalid WorkflowIDConflictPolicy: WORKFLOW_ID_CONFLICT_POLICY_FAIL is not supported for this operation.",
                &|r| r.set_workflow_id_conflict_policy(WorkflowIdConflictPolicy::Fail),
            ),
            ("Blob data size exceeds limit.", &|r| r.signal_input = payloads(sizes::BLOB_BYTES_MAX)),
        ],
    );
}

#[test]
fn a_retry_policy_is_refused_in_the_words_of_the_reference() {
    let with_policy = |spoil: fn(&mut RetryPolicy)| {
        move |r: &mut public::StartWorkflowExecutionRequest| {
            spoil(r.retry_policy.get_or_insert_default());
        }
    };
    check(
        &proper_start(),
        |request| start::start(request, undefined(), || "generated".into()),
        &[
            (
                "invalid InitialInterval set on retry policy: negative duration",
                &with_policy(|p| p.initial_interval = seconds(-1)),
            ),
            (
                "BackoffCoefficient cannot be less than 1 on retry policy.",
                &with_policy(|p| p.backoff_coefficient = 0.5),
            ),
            (
                "BackoffCoefficient cannot be less than 1 on retry policy.",
                &with_policy(|p| p.backoff_coefficient = f64::NAN),
            ),
            (
                "invalid MaximumInterval set on retry policy: negative duration",
                &with_policy(|p| p.maximum_interval = seconds(-1)),
            ),
            (
                "MaximumInterval cannot be less than InitialInterval on retry policy.",
                &with_policy(|p| {
                    (p.initial_interval, p.maximum_interval) = (seconds(5), seconds(4));
                }),
            ),
            ("MaximumAttempts cannot be negative on retry policy.", &with_policy(|p| p.maximum_attempts = -1)),
            (
                "Invalid timeout type value: Lunch.",
                &with_policy(|p| {
                    p.non_retryable_error_types = vec!["TemporalTimeout:Lunch".into()];
                }),
            ),
        ],
    );
}

#[test]
fn a_policy_without_retries_is_not_looked_into() {
    let policy = RetryPolicy { maximum_attempts: 1, backoff_coefficient: -3.0, ..RetryPolicy::default() };
    let request = public::StartWorkflowExecutionRequest { retry_policy: Some(policy), ..proper_start() };
    assert!(start::start(request, undefined(), || "generated".into()).is_ok());
}

#[test]
fn a_start_gets_its_defaults() {
    let request = public::StartWorkflowExecutionRequest {
        retry_policy: Some(RetryPolicy {
            initial_interval: Some(Duration { seconds: 0, nanos: 30_000_000 }),
            ..RetryPolicy::default()
        }),
        workflow_run_timeout: seconds(i64::MAX),
        ..proper_start()
    };
    let checked = start::start(request, undefined(), || "generated".into()).unwrap();
    assert_eq!(checked.request_id, "generated");
    assert_eq!(checked.workflow_id_reuse_policy(), WorkflowIdReusePolicy::AllowDuplicate);
    assert_eq!(checked.workflow_id_conflict_policy(), WorkflowIdConflictPolicy::Fail);
    assert_eq!(checked.workflow_run_timeout, seconds(SPAN_MAX_SECONDS));
    assert_eq!(checked.task_queue.unwrap().kind(), TaskQueueKind::Normal);
    let policy = checked.retry_policy.unwrap();
    assert_eq!(policy.maximum_interval, seconds(3));
    assert!((policy.backoff_coefficient - 2.0).abs() < f64::EPSILON);

    let checked = start::signal_with_start(proper_signal_with_start(), undefined(), || "generated".into()).unwrap();
    assert_eq!(checked.workflow_id_conflict_policy(), WorkflowIdConflictPolicy::UseExisting);
}

#[test]
fn the_old_terminate_policy_becomes_a_conflict_policy() {
    let mut request = proper_start();
    request.set_workflow_id_reuse_policy(WorkflowIdReusePolicy::TerminateIfRunning);
    let checked = start::start(request, undefined(), || "generated".into()).unwrap();
    assert_eq!(checked.workflow_id_reuse_policy(), WorkflowIdReusePolicy::AllowDuplicate);
    assert_eq!(checked.workflow_id_conflict_policy(), WorkflowIdConflictPolicy::TerminateExisting);
}

#[test]
fn search_attributes_are_those_that_are_defined() {
    let attribute = |name: &str, bytes: usize| {
        let metadata = [("encoding".to_owned(), "json/plain".into())].into();
        let data = format!("[\"{}\"]", "x".repeat(bytes)).into();
        SearchAttributes {
            indexed_fields: [(name.to_owned(), Payload { metadata, data, ..Payload::default() })].into(),
        }
    };
    let cases = [
        ("TemporalChangeVersion", 10, None),
        ("WorkflowId", 10, Some("WorkflowId attribute can't be set in SearchAttributes")),
        ("Customer", 10, Some("Namespace default has no mapping defined for search attribute Customer")),
        ("BuildIds", 2045, Some("search attribute BuildIds value size 2049 exceeds size limit 2048")),
    ];
    for (name, bytes, expect) in cases {
        let mut given = attribute(name, bytes);
        let told = search_attributes::admit(Some(&mut given), undefined()).err().map(|error| error.to_string());
        assert_eq!(told.as_deref(), expect, "{name}");
    }
}

#[test]
fn a_signal_is_refused_in_the_words_of_the_reference() {
    let proper = public::SignalWorkflowExecutionRequest {
        workflow_execution: run("order-7", ""),
        signal_name: "paid".into(),
        ..Default::default()
    };
    check(
        &proper,
        |request| signal(request, || "generated".into()),
        &[
            ("Execution is not set on request.", &|r| r.workflow_execution = None),
            ("WorkflowId is not set on request.", &|r| r.workflow_execution = run("", "")),
            ("Invalid RunId.", &|r| r.workflow_execution = run("order-7", "not-a-uuid")),
            ("SignalName is not set on request.", &|r| r.signal_name.clear()),
            ("SignalName length exceeds limit.", &|r| r.signal_name = long()),
            ("RequestId length exceeds limit.", &|r| r.request_id = long()),
            ("Blob data size exceeds limit.", &|r| r.input = payloads(sizes::BLOB_BYTES_MAX)),
        ],
    );
    assert_eq!(signal(proper, || "generated".into()).unwrap().request_id, "generated");
}

#[test]
fn a_termination_says_who_and_why_even_if_its_caller_does_not() {
    let request =
        public::TerminateWorkflowExecutionRequest { workflow_execution: run("order-7", ""), ..Default::default() };
    let checked = terminate(request).unwrap();
    assert_eq!(checked.reason, "terminated by user via frontend");
    assert_eq!(checked.identity, "frontend-service");
}

#[test]
fn a_poll_is_refused_in_the_words_of_the_reference() {
    let proper = public::PollWorkflowTaskQueueRequest { task_queue: queue("orders"), ..Default::default() };
    check(
        &proper,
        worker::poll_workflow_task_queue,
        &[
            ("taskQueue is not set", &|r| r.task_queue = None),
            ("missing task queue name", &|r| r.task_queue = queue("")),
            ("Identity length exceeds limit.", &|r| r.identity = long()),
            ("task queue name cannot start with reserved prefix /_sys/", &|r| r.task_queue = queue("/_sys/orders/1")),
            ("Worker versioning in workflow progress APIs is disabled on this namespace.", &|r| {
                r.worker_version_capabilities.get_or_insert_default().use_versioning = true;
            }),
            ("Build ID exceeds configured limit.workerBuildIdSize, use a shorter build ID.", &|r| {
                r.worker_version_capabilities.get_or_insert_default().build_id = "x".repeat(256);
            }),
            ("NormalName must be set on sticky queue when UseVersioning is true or DeploymentOptions are set.", &|r| {
                r.task_queue.as_mut().unwrap().set_kind(TaskQueueKind::Sticky);
                r.deployment_options = Some(Default::default());
            }),
        ],
    );
}

#[test]
fn tokens_are_decoded_or_refused_in_the_words_of_the_reference() {
    use prost::Message as _;
    use proto::everrow::history::TaskToken;

    let proper = TaskToken {
        namespace_id: Uuid::nil().to_string(),
        workflow_id: "order-7".into(),
        run_id: Uuid::nil().to_string(),
        scheduled_event_id: 5,
        ..TaskToken::default()
    };
    assert_eq!(token::decode(&proper.encode_to_vec()).unwrap().token, proper);
    let not_a_uuid = TaskToken { namespace_id: "default".into(), ..proper.clone() };
    let cases: [(&str, Vec<u8>); 6] = [
        ("Task token not set on request.", Vec::new()),
        ("Error deserializing task token.", vec![0xff; 20]),
        ("Namespace not set on request.", TaskToken { namespace_id: String::new(), ..proper.clone() }.encode_to_vec()),
        (
            "WorkflowId is not set on request.",
            TaskToken { workflow_id: String::new(), ..proper.clone() }.encode_to_vec(),
        ),
        ("Invalid RunId.", TaskToken { run_id: "x".into(), ..proper }.encode_to_vec()),
        ("Namespace default is not found.", not_a_uuid.encode_to_vec()),
    ];
    for (message, bytes) in cases {
        assert_eq!(token::decode(&bytes).unwrap_err().to_string(), message);
    }
}

#[test]
fn a_call_by_id_names_the_activity_and_no_attempt() {
    use token::ActivityById;
    let call = ActivityById {
        namespace_id: workflow::NamespaceId(Uuid::nil()),
        workflow_id: "order-7",
        run_id: "",
        activity_id: "ship",
        identity: "operator",
    };
    let token = token::decode(&token::by_id(call).unwrap()).unwrap().token;
    assert_eq!((token.activity_id.as_str(), token.scheduled_event_id, token.attempt), ("ship", 0, 0));
    let cases = [
        ("ActivityId is not set on request.", ActivityById { activity_id: "", ..call }),
        ("activity not found for ID: ship", ActivityById { workflow_id: "", ..call }),
        ("RunId is not valid UUID.", ActivityById { run_id: "x", ..call }),
    ];
    for (message, call) in cases {
        assert_eq!(token::by_id(call).unwrap_err().to_string(), message);
    }
}

#[test]
fn a_failure_that_is_too_large_is_replaced_by_one_that_tells_so() {
    use proto::temporal::api::failure::v1::Failure;
    use proto::temporal::api::failure::v1::failure::FailureInfo;

    let mut failure = Failure { message: "é".repeat(sizes::BLOB_BYTES_MAX), ..Failure::default() };
    failure.cause = Some(Box::new(Failure { message: "deep".into(), ..Failure::default() }));
    let replacement = sizes::replacement(Some(&failure)).unwrap();
    assert_eq!(replacement.message, "Failure exceeds size limit.");
    assert!(matches!(replacement.failure_info, Some(FailureInfo::ServerFailureInfo(info)) if info.non_retryable));
    assert!(!sizes::is_too_large(Some(&replacement)));
    assert!(replacement.cause.unwrap().message.starts_with('é'));
    assert_eq!(sizes::replacement(Some(&Failure::default())), None);
    assert_eq!(sizes::replacement(None), None);
}

#[test]
fn a_namespace_is_named_within_bounds() {
    assert_eq!(namespace_name("").unwrap_err().to_string(), "Namespace is empty.");
    assert_eq!(namespace_name(&long()).unwrap_err().to_string(), "Namespace length exceeds limit.");
    assert_eq!(namespace_name("default"), Ok(()));
}

#[test]
fn spans_at_the_edge_are_cut_or_refused_and_never_overflow() {
    let cases = [
        (None, Ok(None)),
        (seconds(0), Ok(seconds(0))),
        (seconds(SPAN_MAX_SECONDS), Ok(seconds(SPAN_MAX_SECONDS))),
        (seconds(i64::MAX), Ok(seconds(SPAN_MAX_SECONDS))),
        (Some(Duration { seconds: i64::MAX, nanos: i32::MAX }), Ok(seconds(SPAN_MAX_SECONDS))),
        (seconds(i64::MIN), Err("negative duration")),
        (Some(Duration { seconds: 0, nanos: i32::MIN }), Err("negative duration")),
        (Some(Duration { seconds: -1, nanos: 1 }), Err("duration has seconds and nanos with different signs")),
        (Some(Duration { seconds: 1, nanos: 1_500_000_000 }), Ok(Some(Duration { seconds: 2, nanos: 500_000_000 }))),
    ];
    for (given, expect) in cases {
        let mut checked = given;
        assert_eq!(span(&mut checked).map(|()| checked), expect, "{given:?}");
    }
}

#[test]
fn updates_are_checked() {
    use proto::temporal::api::update::v1::{Input, Meta, Request, WaitPolicy};

    let request = Request {
        meta: Some(Meta { update_id: "u".into(), ..Default::default() }),
        input: Some(Input { name: "add".into(), ..Default::default() }),
        ..Default::default()
    };
    let proper = public::UpdateWorkflowExecutionRequest {
        workflow_execution: run("order-7", ""),
        request: Some(request),
        ..Default::default()
    };
    let asynchronous = "UpdateWorkflowExecution issued asynchronously and waiting on update admitted is not supported.";
    check(
        &proper,
        |request| update::update(request, String::new),
        &[
            ("Execution is not set on request.", &|r| r.workflow_execution = None),
            ("WorkflowId is not set on request.", &|r| r.workflow_execution = run("", "")),
            ("Update meta is not set on request.", &|r| r.request = None),
            ("UpdateId length exceeds limit.", &|r| {
                r.request.as_mut().unwrap().meta = Some(Meta { update_id: long(), ..Default::default() });
            }),
            ("Update input is not set on request.", &|r| r.request.as_mut().unwrap().input = None),
            ("Update name is not set on request.", &|r| r.request.as_mut().unwrap().input = Some(Input::default())),
            (asynchronous, &|r| r.wait_policy = Some(WaitPolicy { lifecycle_stage: 1 })),
        ],
    );
    let checked = update::update(proper, String::new).unwrap();
    assert_eq!(checked.wait_policy, Some(WaitPolicy { lifecycle_stage: 3 }), "the outcome is waited for");
}

#[test]
fn polls_of_updates_are_checked() {
    use proto::temporal::api::update::v1::UpdateRef;

    let proper = public::PollWorkflowExecutionUpdateRequest {
        update_ref: Some(UpdateRef { workflow_execution: run("order-7", ""), update_id: "u".into() }),
        ..Default::default()
    };
    check(
        &proper,
        update::poll,
        &[
            ("UpdateRef is not set on request.", &|r| r.update_ref = None),
            ("Can't load workflow execution.  WorkflowId not set.", &|r| r.update_ref = Some(UpdateRef::default())),
            ("RunId is not valid UUID.", &|r| {
                r.update_ref.as_mut().unwrap().workflow_execution = run("order-7", "seven")
            }),
        ],
    );
}
