//! Runs to store: random ones, in which everything that may be there is there or not.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proto::temporal::api::common::v1::{
    Callback, Header, Link, Memo, Payload, Payloads, Priority, RetryPolicy, SearchAttributes, WorkflowExecution, link,
};
use proto::temporal::api::enums::v1::{EventType, ParentClosePolicy, SuggestContinueAsNewReason};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::history::v1::HistoryEvent;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use uuid::Uuid;
use workflow::{
    Activity, ActivityAttempt, ActivityOptions, ActivityPause, ActivityProgress, Branch, BranchRange, Child,
    ChildStart, Closed, CompletionCallback, EventId, ExecutionKey, ExecutionState, ExternalRequest, Items,
    KnownRequest, Listing, NamespaceId, Parent, Pause, RecordedAt, RequestIds, ResetPoint, RunId, Running, Scheduled,
    Started, StartedAgain, Status, Sticky, Timer, Timestamp, Unrecorded, Update, VersionHistoryItem, WorkflowTask,
};

pub(super) struct Sampler(StdRng);

const STATUSES: [Status; 7] = [
    Status::Running,
    Status::Completed,
    Status::Failed,
    Status::Canceled,
    Status::Terminated,
    Status::ContinuedAsNew,
    Status::TimedOut,
];

impl Sampler {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    pub(super) fn uuid(&mut self) -> Uuid {
        uuid::Builder::from_random_bytes(self.0.random()).into_uuid()
    }

    pub(super) fn key(&mut self) -> ExecutionKey {
        ExecutionKey {
            namespace_id: NamespaceId(self.uuid()),
            workflow_id: self.text().into(),
            run_id: RunId(self.uuid()),
        }
    }

    /// Of version 1, nothing of it stored yet.
    pub(super) fn state(&mut self) -> ExecutionState {
        ExecutionState {
            key: self.key(),
            started: Arc::new(self.started()),
            status: self.status(),
            closed: self.maybe(|s| Closed {
                event_id: s.event_id(),
                at: s.moment(),
                new_run_id: s.maybe(|s| RunId(s.uuid())),
            }),
            next_event_id: self.event_id(),
            branch: Arc::new(self.branch()),
            version_history: self.several(|s| VersionHistoryItem { event_id: s.event_id(), version: s.number() }),
            workflow_task: self.workflow_task(),
            workflow_task_attempt: self.0.random(),
            last_completed_started_event_id: self.maybe(Self::event_id),
            activities: self.items(Self::activity),
            timers: self.items(Self::timer),
            children: self.items(Self::child),
            external_signals: self.items(Self::external_request),
            external_cancels: self.items(Self::external_request),
            cancel_requested: self.maybe(Self::event_id),
            signal_request_ids: self.request_ids(),
            n_signals: self.number(),
            updates: self.items(|s, _| s.update()),
            history_size: self.number(),
            memo: Arc::new(self.memo()),
            search_attributes: Arc::new(self.search_attributes()),
            priority: self.maybe(Self::priority),
            callbacks: Arc::new(self.several(|s| CompletionCallback {
                callback: Callback::default(),
                request_id: s.text(),
                registered_at: s.moment(),
            })),
            known_requests: Arc::new(self.several(|s| KnownRequest {
                request_id: s.text(),
                event_type: EventType::WorkflowExecutionOptionsUpdated,
                event_id: s.event_id(),
            })),
            reset_points: Arc::new(self.several(Self::reset_point)),
            pause: self.maybe(|s| Pause { at: s.moment(), identity: s.text(), reason: s.text(), request_id: s.text() }),
            unrecorded: Unrecorded {
                db_record_version: 1,
                last_txn_id: self.number(),
                sticky: self.maybe(|s| Sticky { task_queue: s.text(), schedule_to_start_timeout: s.span() }),
                buffered_events: self.items(|s, _| s.event()),
                // Beyond any place that an event has here.
                last_waiting_place: i64::MAX,
                last_updated_at: self.maybe(Self::moment),
                start_request_id: self.text(),
                reset_request_id: self.text(),
                cancel_request_id: self.maybe(Self::text),
                reset_run_id: self.maybe(|s| RunId(s.uuid())),
                is_closing: self.0.random(),
                listing: Listing { started_in: self.number(), closed_in: self.maybe(Self::number) },
                schedule_id: self.maybe(|s| Arc::from(format!("schedule {}", s.number()))),
            },
        }
    }

    fn request_ids(&mut self) -> RequestIds {
        let mut ids = RequestIds::default();
        for (event_id, id) in self.items(|s, _| s.text()).iter() {
            ids.insert(event_id, id.clone());
        }
        ids
    }

    fn activity_options(&mut self) -> ActivityOptions {
        ActivityOptions {
            task_queue: self.text(),
            schedule_to_start_timeout: self.maybe(Self::span),
            schedule_to_close_timeout: self.maybe(Self::span),
            start_to_close_timeout: self.maybe(Self::span),
            heartbeat_timeout: self.maybe(Self::span),
            retry_policy: self.maybe(Self::retry_policy),
            priority: self.maybe(Self::priority),
        }
    }

    pub(super) fn status(&mut self) -> Status {
        STATUSES[self.0.random_range(0..STATUSES.len())]
    }

    pub(super) fn activity(&mut self, id: i64) -> Activity {
        Activity {
            scheduled_event_id: EventId(id),
            scheduled_at: self.moment(),
            scheduled_batch_id: self.event_id(),
            version: self.number(),
            activity_id: self.text(),
            activity_type: self.text(),
            task_queue: self.text(),
            schedule_to_start_timeout: self.maybe(Self::span),
            schedule_to_close_timeout: self.maybe(Self::span),
            start_to_close_timeout: self.maybe(Self::span),
            heartbeat_timeout: self.maybe(Self::span),
            retry_policy: self.maybe(Self::retry_policy),
            cancel_requested_event_id: self.maybe(Self::event_id),
            priority: self.maybe(Self::priority),
            unrecorded: ActivityProgress {
                attempt: self.0.random(),
                attempt_scheduled_at: self.moment(),
                started: self.maybe(|s| ActivityAttempt {
                    event_id: s.maybe(Self::event_id),
                    at: s.moment(),
                    request_id: s.text(),
                    identity: s.text(),
                }),
                last_failure: self.maybe(|s| Failure { message: s.text(), ..Failure::default() }),
                last_worker_identity: self.text(),
                heartbeat_details: self.maybe(Self::payloads),
                last_heartbeat_at: self.maybe(Self::moment),
                timer_armed_for: self.maybe(Self::moment),
                last_attempt_ended_at: self.maybe(Self::moment),
                pause: self.maybe(|s| ActivityPause {
                    at: s.moment(),
                    identity: s.text(),
                    reason: s.text(),
                    request_id: s.text(),
                }),
                stamp: self.0.random(),
                is_reset: self.0.random(),
                resets_heartbeats: self.0.random(),
                original_options: self.maybe(|s| Box::new(s.activity_options())),
            },
        }
    }

    pub(super) fn timer(&mut self, id: i64) -> Timer {
        Timer { timer_id: self.text(), started_event_id: EventId(id), fires_at: self.moment(), version: self.number() }
    }

    pub(super) fn child(&mut self, id: i64) -> Child {
        Child {
            initiated_event_id: EventId(id),
            initiated_batch_id: self.event_id(),
            version: self.number(),
            namespace: self.text(),
            namespace_id: NamespaceId(self.uuid()),
            workflow_id: self.text(),
            workflow_type: self.text(),
            parent_close_policy: ParentClosePolicy::RequestCancel,
            create_request_id: self.text(),
            started: self.maybe(|s| ChildStart { event_id: s.event_id(), run_id: RunId(s.uuid()) }),
            priority: self.maybe(Self::priority),
        }
    }

    pub(super) fn external_request(&mut self, id: i64) -> ExternalRequest {
        ExternalRequest {
            initiated_event_id: EventId(id),
            initiated_batch_id: self.event_id(),
            version: self.number(),
            request_id: self.text(),
            namespace_id: NamespaceId(self.uuid()),
            workflow_id: self.text(),
        }
    }

    pub(super) fn update(&mut self) -> Update {
        Update {
            update_id: self.text(),
            admitted: self.maybe(Self::place),
            accepted_event_id: self.maybe(Self::event_id),
            completed: self.maybe(Self::place),
        }
    }

    fn place(&mut self) -> RecordedAt {
        RecordedAt { event_id: self.event_id(), batch_id: self.event_id() }
    }

    pub(super) fn event(&mut self) -> HistoryEvent {
        HistoryEvent { event_id: self.number(), version: self.number(), ..HistoryEvent::default() }
    }

    pub(super) fn text(&mut self) -> String {
        let length = self.0.random_range(1..20);
        (0..length).map(|_| self.0.random_range('a'..'ÿ')).collect()
    }

    pub(super) fn number(&mut self) -> i64 {
        self.0.random()
    }

    pub(super) fn moment(&mut self) -> Timestamp {
        Timestamp(self.number())
    }

    pub(super) fn event_id(&mut self) -> EventId {
        EventId(self.number())
    }

    pub(super) fn span(&mut self) -> Duration {
        Duration::new(self.0.random_range(0..1 << 60), self.0.random_range(0..1_000_000_000))
    }

    pub(super) fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.0.random() { Some(make(self)) } else { None }
    }

    fn several<T>(&mut self, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.0.random_range(0..4)).map(|_| make(self)).collect()
    }

    fn items<T: Clone>(&mut self, make: impl Fn(&mut Self, i64) -> T) -> Items<T> {
        let mut items = Items::default();
        for id in self.several(Self::number) {
            let item = make(self, id);
            items.insert(id, item);
        }
        items
    }

    fn reset_point(&mut self) -> ResetPoint {
        ResetPoint {
            binary_checksum: self.text(),
            build_id: self.text(),
            run_id: RunId(self.uuid()),
            first_task_completed_event_id: self.event_id(),
            created_at: self.moment(),
            expires_at: self.maybe(Self::moment),
            is_resettable: self.0.random(),
        }
    }

    fn started(&mut self) -> Started {
        Started {
            workflow_type: self.text(),
            task_queue: self.text(),
            started_at: self.moment(),
            execution_timeout: self.maybe(Self::span),
            run_timeout: self.maybe(Self::span),
            task_timeout: self.span(),
            execution_expires_at: self.maybe(Self::moment),
            run_expires_at: self.maybe(Self::moment),
            first_task_backoff: self.span(),
            retry_policy: self.maybe(Self::retry_policy),
            attempt: self.0.random(),
            cron_schedule: self.text(),
            first_run_id: RunId(self.uuid()),
            original_run_id: RunId(self.uuid()),
            continued_from: self.maybe(|s| RunId(s.uuid())),
            parent: self.maybe(|s| Parent {
                namespace: s.text(),
                namespace_id: NamespaceId(s.uuid()),
                execution: s.execution(),
                initiated_event_id: s.event_id(),
                initiated_version: s.number(),
                root: s.maybe(Self::execution),
            }),
            priority: self.maybe(Self::priority),
            links: self.several(Self::link),
            reset_at: self.maybe(Self::moment),
            again: self.maybe(|s| StartedAgain {
                input: s.maybe(Self::payloads),
                header: s.maybe(|s| Header { fields: s.payload_map() }),
                last_completion_result: s.maybe(Self::payloads),
                memo: s.maybe(Self::memo),
                search_attributes: s.maybe(Self::search_attributes),
            }),
        }
    }

    fn workflow_task(&mut self) -> WorkflowTask {
        let scheduled = Scheduled {
            event_id: self.event_id(),
            at: self.moment(),
            first_scheduled_at: self.moment(),
            attempt: self.0.random(),
            task_queue: self.text(),
            start_to_close_timeout: self.span(),
            version: self.number(),
            is_speculative: self.0.random(),
        };
        let running = Running {
            event_id: self.event_id(),
            at: self.moment(),
            request_id: self.text(),
            identity: self.text(),
            history_size: self.number(),
            continue_as_new_reasons: self.several(|_| SuggestContinueAsNewReason::HistorySizeTooLarge),
        };
        match self.0.random_range(0..3) {
            0 => WorkflowTask::None,
            1 => WorkflowTask::Scheduled(scheduled),
            _ => WorkflowTask::Running(scheduled, running),
        }
    }

    fn branch(&mut self) -> Branch {
        Branch {
            tree_id: self.uuid(),
            branch_id: self.uuid(),
            ancestors: self.several(|s| BranchRange { branch_id: s.uuid(), begin: s.event_id(), end: s.event_id() }),
        }
    }

    fn retry_policy(&mut self) -> RetryPolicy {
        RetryPolicy { maximum_attempts: self.0.random(), ..RetryPolicy::default() }
    }

    fn priority(&mut self) -> Priority {
        Priority { priority_key: self.0.random(), ..Priority::default() }
    }

    fn execution(&mut self) -> WorkflowExecution {
        WorkflowExecution { workflow_id: self.text(), run_id: self.text() }
    }

    fn link(&mut self) -> Link {
        let event = link::WorkflowEvent { workflow_id: self.text(), ..link::WorkflowEvent::default() };
        Link { variant: Some(link::Variant::WorkflowEvent(event)) }
    }

    fn payloads(&mut self) -> Payloads {
        Payloads { payloads: self.several(Self::payload) }
    }

    fn payload(&mut self) -> Payload {
        Payload { data: self.text().into(), ..Payload::default() }
    }

    fn payload_map(&mut self) -> HashMap<String, Payload> {
        self.several(|s| (s.text(), s.payload())).into_iter().collect()
    }

    fn memo(&mut self) -> Memo {
        Memo { fields: self.payload_map() }
    }

    fn search_attributes(&mut self) -> SearchAttributes {
        SearchAttributes { indexed_fields: self.payload_map() }
    }
}
