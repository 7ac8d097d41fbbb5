//! Workflow execution state and its transitions. Pure: no clock, random, configuration, log or IO.
//!
//! `start`, `transition` and `reset` decide what happens next and return it as data; `replay` rebuilds a state from its
//! events; `ExecutionState::check` asserts the invariants. The modules are in reading order.

mod ids;
mod time;
pub mod civil;
mod items;
mod request_ids;
mod weight;
mod state;
mod facts;
mod input;
mod outcome;
mod transition;
mod draft;
mod listing;
mod events;
mod apply;
mod replay;
mod commands;
mod names;
mod tasks;
mod start;
mod start_policy;
mod workflow_task;
mod workflow_task_attempt;
mod speculative;
mod activity;
mod activity_command;
mod activity_attempt;
mod activity_operation;
mod activity_options;
mod timer;
mod child;
mod child_command;
mod external;
mod signal;
mod update;
mod update_message;
mod options;
mod properties;
mod search_attributes;
mod pause;
mod close;
mod next_run;
mod branch;
mod reset;
mod worker_version;
mod retry;
mod cron;

pub use activity::{Activity, ActivityAttempt, ActivityPause, ActivityProgress};
pub use activity_options::ActivityOptions;
pub use branch::{Branch, BranchRange, VersionHistoryItem};
pub use child::{Child, ChildClosed, ChildStart, ChildStartFailed, ChildStarted};
pub use close::Closed;
pub use cron::check_cron_schedule;
pub use external::{ExternalAnswer, ExternalRequest};
pub use facts::{Facts, Limits};
pub use ids::{EventId, ExecutionKey, NamespaceId, RunId};
pub use input::{
    ActivityRef, ActivityTarget, AdmitUpdate, CancelActivity, CompleteActivity, CompleteWorkflowTask, FailActivity,
    FailWorkflowTask, Heartbeat, Input, Jitter, Join, KnownNamespaces, OptionsChange, OtherNamespaces, Parent,
    PauseActivity, PauseRequest, RefusedSearchAttributes, RequestCancel, ResetActivity, Sender, Signal, Start,
    StartActivity, StartWorkflowTask, TaskRef, Terminate, UnpauseActivity, UpdateActivity, UpdateOptions,
};
pub use items::Items;
pub use options::{CompletionCallback, KnownRequest, is_known};
pub use outcome::{
    ActivityStarted, ChangedItems, Decision, HeartbeatFlags, LimitCause, Notice, Rejection, Reply, Transition,
    WorkflowTaskStarted,
};
pub use pause::{Pause, shown_search_attributes};
pub use replay::{ReplayError, replay};
pub use request_ids::RequestIds;
pub use reset::{Reapplied, Reset, ResetPoint, reset};
pub use retry::with_defaults as retry_policy_with_defaults;
pub use start::{Continued, Started, StartedAgain, start};
pub use start_policy::{CurrentRun, StartDecision, StartPolicy, decide_start};
pub use state::{ExecutionState, Listing, Status, Sticky, Unrecorded};
pub use tasks::{StickyDispatch, Task, TimerTask, TransferTask, VisibilityTask};
pub use time::Timestamp;
pub use timer::Timer;
pub use transition::transition;
pub use update::{RecordedAt, Update, WaitingUpdate};
pub use weight::Weigh;
pub use workflow_task::{Running, Scheduled, WorkflowTask};
pub use workflow_task_attempt::unwritten_events;
