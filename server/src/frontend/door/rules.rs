//! The door's limits, and the limit of each text field of a request. A field that is not listed here has a default
//! limit, so a new field of the API is limited without a change here.

use prost_types::FieldDescriptorProto;
use prost_types::field_descriptor_proto::Type;

use crate::frontend::validate::ID_BYTES_MAX;

/// Nesting depth that prost decodes.
const PROST_DEPTH: usize = 100;
/// Parts of a request are stored and returned at a greater depth: a failure at level 1 of a request is at up to level 8
/// of a response (`ExecuteMultiOperationResponse…history.events.…attributes.outcome.failure`), and the server wraps it
/// once or twice (a timeout's cause). Official SDKs decode responses with the same limit and wrap failures again. A
/// test checks the margin against the descriptors.
pub(super) const DEPTH_MARGIN: usize = 20;
pub(super) const DEPTH_MAX: usize = PROST_DEPTH - DEPTH_MARGIN;

/// Entries of all maps of one message. Users' maps (memos, headers, search attributes) have tens.
pub(super) const MAP_ENTRIES_MAX: usize = 2_000;
/// Decoded size of all list and map items of a request, without their texts and payloads: an empty message of two bytes
/// on the wire takes hundreds in memory, so 4 MiB of empty commands would take more than 1 GiB.
pub(super) const DECODED_BYTES_MAX: usize = 64 << 20;
/// Unknown fields (of a newer API) are skipped, but payloads that are kept keep the request's whole buffer in memory.
pub(super) const UNKNOWN_BYTES_MAX: usize = 64 << 10;

/// An id, a name, a key, an identity: the reference's `limit.maxIDLength`.
const ID: Bound = Bound::Bytes(ID_BYTES_MAX as u32);
/// Ids that later validation refuses in the reference's own words, which differ by call, or, in a command, by failing
/// the workflow task. The door refuses only absurd lengths.
const WORDED: Bound = Bound::Bytes(16 << 10);
/// Free text by users, which the reference does not limit.
const PROSE: Bound = Bound::Bytes(256 << 10);
/// Visibility queries; the parser limits the number of conditions.
const QUERY: Bound = Bound::Bytes(256 << 10);
/// Tokens. The server's own are never longer, but clients can forge others.
const TOKEN: Bound = Bound::Bytes(256 << 10);
/// Counted with the payloads of its event, by `validate::sizes` or by the core.
const COUNTED: Bound = Bound::Elsewhere;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Bytes(u32),
    /// Checked after decoding, as a part of something that may be large.
    Elsewhere,
}

/// Where a field occurs: in a command a violation fails the workflow task, elsewhere it refuses the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Context {
    Request,
    Command,
}

impl Context {
    /// The context of the fields of this message.
    pub(super) fn inside(self, message: &str) -> Self {
        if message == ".temporal.api.command.v1.Command" { Self::Command } else { self }
    }
}

/// Fields with a special bound: message and field, either of which may be `*`. The first match wins.
pub(super) const SPECIAL: &[(&str, &str, Bound)] = &[
    // User payloads and failures.
    ("common.v1.Payload", "data", COUNTED),
    ("common.v1.Payload.MetadataEntry", "value", COUNTED),
    ("failure.v1.Failure", "message", COUNTED),
    ("failure.v1.Failure", "source", COUNTED),
    ("failure.v1.Failure", "stack_trace", COUNTED),
    ("failure.v1.ApplicationFailureInfo", "type", COUNTED),
    ("nexus.v1.Failure", "message", COUNTED),
    ("nexus.v1.Failure", "stack_trace", COUNTED),
    ("nexus.v1.Failure", "details", COUNTED),
    ("nexus.v1.Failure.MetadataEntry", "value", COUNTED),
    ("query.v1.WorkflowQueryResult", "error_message", COUNTED),
    ("workflowservice.v1.RespondQueryTaskCompletedRequest", "error_message", COUNTED),
    // The scan descends into the packed message.
    (".google.protobuf.Any", "value", COUNTED),
    // Counted with the schedule that it is a part of.
    ("schedule.v1.ScheduleSpec", "timezone_data", COUNTED),
    // Counted with the callback or the link that they are a part of.
    ("common.v1.Callback.Nexus", "url", WORDED),
    ("common.v1.Callback.Nexus.HeaderEntry", "*", WORDED),
    ("common.v1.Callback.Internal", "data", PROSE),
    ("common.v1.Link.BatchJob", "*", WORDED),
    ("common.v1.Link.WorkflowEvent", "*", WORDED),
    ("common.v1.Link.WorkflowEvent.RequestIdReference", "*", WORDED),
    ("common.v1.Link.Workflow", "*", WORDED),
    ("common.v1.Link.Activity", "*", WORDED),
    ("common.v1.Link.NexusOperation", "*", WORDED),
    ("common.v1.Link.Callback", "*", WORDED),
    ("nexus.v1.Link", "url", WORDED),
    ("nexus.v1.EndpointTarget.External", "url", WORDED),
    ("nexus.v1.EndpointTarget.Worker", "*", WORDED),
    ("nexus.v1.EndpointSpec", "name", WORDED),
    // Nexus headers and tokens are chosen by other servers; not built yet.
    ("workflowservice.v1.StartNexusOperationExecutionRequest.NexusHeaderEntry", "value", WORDED),
    ("failure.v1.NexusOperationFailureInfo", "operation_token", WORDED),
    ("nexus.v1.StartOperationResponse.Async", "operation_token", WORDED),
    // Sent in polls and kept with the poller, whether or not they are validated later.
    ("deployment.v1.WorkerDeploymentOptions", "*", ID),
    // Refused later in the reference's words.
    ("*", "namespace", WORDED),
    ("workflowservice.v1.PollWorkflowTaskQueueRequest", "identity", WORDED),
    ("workflowservice.v1.PollActivityTaskQueueRequest", "identity", WORDED),
    ("workflowservice.v1.RespondWorkflowTaskCompletedRequest", "identity", WORDED),
    ("workflowservice.v1.RespondWorkflowTaskFailedRequest", "identity", WORDED),
    ("workflowservice.v1.RespondActivityTaskCompletedRequest", "identity", WORDED),
    ("workflowservice.v1.RespondActivityTaskFailedRequest", "identity", WORDED),
    ("workflowservice.v1.RespondActivityTaskCanceledRequest", "identity", WORDED),
    ("workflowservice.v1.RecordActivityTaskHeartbeatByIdRequest", "identity", WORDED),
    ("workflowservice.v1.RespondActivityTaskCompletedByIdRequest", "identity", WORDED),
    ("workflowservice.v1.RespondActivityTaskFailedByIdRequest", "identity", WORDED),
    ("workflowservice.v1.RespondActivityTaskCanceledByIdRequest", "identity", WORDED),
    ("workflowservice.v1.StartWorkflowExecutionRequest", "request_id", WORDED),
    ("workflowservice.v1.SignalWithStartWorkflowExecutionRequest", "request_id", WORDED),
    ("workflowservice.v1.SignalWorkflowExecutionRequest", "request_id", WORDED),
    ("workflowservice.v1.RequestCancelWorkflowExecutionRequest", "request_id", WORDED),
    ("workflowservice.v1.ResetWorkflowExecutionRequest", "request_id", WORDED),
    ("workflowservice.v1.CreateScheduleRequest", "request_id", WORDED),
    ("workflowservice.v1.UpdateScheduleRequest", "request_id", WORDED),
    ("workflowservice.v1.PatchScheduleRequest", "request_id", WORDED),
    ("workflowservice.v1.SignalWorkflowExecutionRequest", "signal_name", WORDED),
    ("workflowservice.v1.SignalWithStartWorkflowExecutionRequest", "signal_name", WORDED),
    ("*", "schedule_id", WORDED),
    ("*", "job_id", WORDED),
    ("common.v1.Priority", "fairness_key", WORDED),
    ("update.v1.Meta", "update_id", WORDED),
    ("common.v1.WorkerVersionCapabilities", "build_id", WORDED),
    ("common.v1.WorkerVersionStamp", "build_id", WORDED),
    ("workflowservice.v1.StartWorkflowExecutionRequest", "workflow_id", WORDED),
    ("workflowservice.v1.SignalWithStartWorkflowExecutionRequest", "workflow_id", WORDED),
    ("workflow.v1.NewWorkflowExecutionInfo", "workflow_id", WORDED),
    ("batch.v1.BatchOperationSignal", "signal", WORDED),
    ("taskqueue.v1.TaskQueue", "*", WORDED),
    ("common.v1.WorkflowType", "name", WORDED),
    ("workflowservice.v1.PauseActivityRequest", "*", WORDED),
    ("workflowservice.v1.UpdateActivityOptionsRequest", "*", WORDED),
    ("workflowservice.v1.PauseActivityExecutionRequest", "*", WORDED),
    ("workflowservice.v1.UnpauseActivityExecutionRequest", "*", WORDED),
    ("workflowservice.v1.ResetActivityExecutionRequest", "*", WORDED),
    ("workflowservice.v1.UpdateActivityExecutionOptionsRequest", "*", WORDED),
    ("workflowservice.v1.PauseWorkflowExecutionRequest", "*", WORDED),
    ("workflowservice.v1.UnpauseWorkflowExecutionRequest", "*", WORDED),
    // Prose.
    ("*", "reason", PROSE),
    ("*", "comment", PROSE),
    ("*", "notes", PROSE),
    ("schedule.v1.SchedulePatch", "*", PROSE),
    ("*", "security_token", PROSE),
    // Queries.
    ("*", "query", QUERY),
    ("*", "visibility_query", QUERY),
    ("*", "predicate", QUERY),
];

pub(super) fn bound(message: &str, field: &FieldDescriptorProto, context: Context) -> Bound {
    let special = SPECIAL.iter().find(|(of, name, _)| {
        let is_message = *of == "*" || message == *of || message.strip_prefix(".temporal.api.") == Some(of);
        is_message && (*name == "*" || field.name() == *name)
    });
    match (special, field.r#type(), context) {
        (Some((_, _, bound)), _, _) => *bound,
        (None, Type::Bytes, _) => TOKEN,
        (None, _, Context::Command) => WORDED,
        (None, _, Context::Request) => ID,
    }
}
