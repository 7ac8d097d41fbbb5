//! Links from a request to what caused it.

use cluster::errors::ServiceError;
use prost::Message as _;
use proto::temporal::api::common::v1::Link;
use proto::temporal::api::common::v1::link::workflow_event::Reference;
use proto::temporal::api::common::v1::link::{Variant, WorkflowEvent};
use proto::temporal::api::enums::v1::EventType;

use super::invalid;

const LINKS_MAX: usize = 10;
/// A link holds a namespace and a workflow id, both up to a thousand bytes.
const LINK_BYTES_MAX: usize = 4000;

pub(crate) fn check(links: &[Link]) -> Result<(), ServiceError> {
    if links.len() > LINKS_MAX {
        let n_links = links.len();
        return Err(invalid(format!("cannot attach more than {LINKS_MAX} links per request, got {n_links}")));
    }
    links.iter().try_for_each(check_one)
}

fn check_one(link: &Link) -> Result<(), ServiceError> {
    let size = link.encoded_len();
    if size > LINK_BYTES_MAX {
        return Err(invalid(format!("link exceeds allowed size of {LINK_BYTES_MAX}, got {size}")));
    }
    match &link.variant {
        None | Some(Variant::Callback(_)) => Err(invalid("unsupported link variant")),
        Some(Variant::WorkflowEvent(link)) => {
            let fields = [("namespace", &link.namespace), ("workflow ID", &link.workflow_id), ("run ID", &link.run_id)];
            not_empty("workflow event", &fields)?;
            event_reference(link)
        }
        Some(Variant::BatchJob(link)) if link.job_id.is_empty() => {
            Err(invalid("batch job link must not have an empty job ID"))
        }
        Some(Variant::BatchJob(_)) => Ok(()),
        Some(Variant::NexusOperation(link)) => not_empty(
            "nexus operation",
            &[("namespace", &link.namespace), ("operation ID", &link.operation_id), ("run ID", &link.run_id)],
        ),
        Some(Variant::Activity(link)) => not_empty(
            "activity",
            &[("namespace", &link.namespace), ("activity ID", &link.activity_id), ("run ID", &link.run_id)],
        ),
        Some(Variant::Workflow(link)) => not_empty(
            "workflow",
            &[("namespace", &link.namespace), ("workflow ID", &link.workflow_id), ("run ID", &link.run_id)],
        ),
    }
}

fn event_reference(link: &WorkflowEvent) -> Result<(), ServiceError> {
    if let Some(Reference::EventRef(event)) = &link.reference
        && event.event_type() == EventType::Unspecified
        && event.event_id != 0
    {
        return Err(invalid("workflow event link ref cannot have an unspecified event type and a non-zero event ID"));
    }
    Ok(())
}

fn not_empty(kind: &str, fields: &[(&str, &String)]) -> Result<(), ServiceError> {
    match fields.iter().find(|(_, value)| value.is_empty()) {
        Some((name, _)) => Err(invalid(format!("{kind} link must not have an empty {name} field"))),
        None => Ok(()),
    }
}
