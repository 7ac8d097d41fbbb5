//! The limits of the door, and which one each text of a request has. A field that is not named here has the usual limit, so a new
//! field of the API is limited without a line of ours.

use prost_types::FieldDescriptorProto;
use prost_types::field_descriptor_proto::Type;

use crate::frontend::validate::ID_BYTES_MAX;

/// Levels of messages in messages that prost decodes.
const PROST_DEPTH: usize = 100;
/// What is kept of a request lies deeper than in the request: a failure that is at level 1 of it is at up to level 8 of an answer
/// (`ExecuteMultiOperationResponse…history.events.…attributes.outcome.failure`) and is wrapped once or twice by the server on the
/// way (a timeout's cause). Official SDKs decode answers with the same limit and wrap failures again. A test holds the
/// margin against the descriptors.
pub(super) const DEPTH_MARGIN: usize = 20;
pub(super) const DEPTH_MAX: usize = PROST_DEPTH - DEPTH_MARGIN;

/// Entries of all maps of one message. Maps of users (memos, headers, search attributes) have tens.
pub(super) const MAP_ENTRIES_MAX: usize = 2_000;
/// What the items of all lists and maps of a request may take in memory, without their texts and payloads: an empty message of two bytes on
/// the wire takes hundreds decoded, so that 4 MiB of empty commands would take more than a GiB.
pub(super) const DECODED_BYTES_MAX: usize = 64 << 20;
/// Fields of a newer API are skipped, but the payloads that are kept of a request keep its whole buffer in memory.
pub(super) const UNKNOWN_BYTES_MAX: usize = 64 << 10;

/// An id, a name, a key, an identity: the reference's `limit.maxIDLength`.
const ID: Bound = Bound::Bytes(ID_BYTES_MAX as u32);
/// Ids that the code behind the door also checks and refuses in the reference's own words, each call in others; or, in a command,
/// by failing the workflow task. The door leaves them to it unless they are absurd.
const WORDED: Bound = Bound::Bytes(16 << 10);
/// Prose by people for people, which the reference does not limit.
const PROSE: Bound = Bound::Bytes(256 << 10);
/// Queries of lists; how many conditions there may be is for the parser to say.
const QUERY: Bound = Bound::Bytes(256 << 10);
/// Tokens are ours, and none is longer. Anybody can make up others.
const TOKEN: Bound = Bound::Bytes(256 << 10);
/// Counted with the payloads of its event, by `validate::sizes` or by the core.
const COUNTED: Bound = Bound::Elsewhere;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Bytes(u32),
    /// Checked behind the door, as a part of something that may be large.
    Elsewhere,
}

/// Around a field: commands are answered by failing the workflow task, everything else by refusing the request.
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

/// The fields whose bound is not the usual one: a message and a field, either of which may be `*`. The first that fits counts.
pub(super) const SPECIAL: &[(&str, &str, Bound)] = &[
    // What users attach, and how their code failed.
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
    // The walk goes into what is packed.
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
    // Nexus headers and tokens are others' to choose, and not built yet.
    ("workflowservice.v1.StartNexusOperationExecutionRequest.NexusHeaderEntry", "value", WORDED),
    ("failure.v1.NexusOperationFailureInfo", "operation_token", WORDED),
    ("nexus.v1.StartOperationResponse.Async", "operation_token", WORDED),
    // A poll says them of its worker, who is remembered, whether they are checked behind the door or not.
    ("deployment.v1.WorkerDeploymentOptions", "*", ID),
    // The reference's words.
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
