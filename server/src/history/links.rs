//! Links of a response to the event that its request created. Pure.

use proto::temporal::api::common::v1 as common;
use proto::temporal::api::common::v1::link::workflow_event::{EventReference, Reference, RequestIdReference};
use proto::temporal::api::common::v1::link::{Variant, WorkflowEvent};
use proto::temporal::api::enums::v1::EventType;
use workflow::{EventId, RunId};

/// The run that is linked to.
pub(super) struct LinkedRun<'a> {
    pub(super) namespace: String,
    pub(super) workflow_id: &'a str,
    pub(super) run_id: RunId,
}

impl LinkedRun<'_> {
    pub(super) fn start_link(self) -> common::Link {
        let event =
            EventReference { event_id: EventId::FIRST.0, event_type: EventType::WorkflowExecutionStarted.into() };
        self.link(Reference::EventRef(event))
    }

    /// Links by request id: the event may not be recorded yet, and have no id.
    pub(super) fn request_link(self, request_id: String, event_type: EventType) -> common::Link {
        self.link(Reference::RequestIdRef(RequestIdReference { request_id, event_type: event_type.into() }))
    }

    fn link(self, reference: Reference) -> common::Link {
        let event = WorkflowEvent {
            namespace: self.namespace,
            workflow_id: self.workflow_id.to_owned(),
            run_id: self.run_id.to_string(),
            reference: Some(reference),
        };
        common::Link { variant: Some(Variant::WorkflowEvent(event)) }
    }
}
