//! A schedule as clients see it: described, listed, and its times.

use std::sync::Arc;

use bytes::Bytes;
use cluster::search_attributes::attribute::{Attribute, NAMESPACE_DIVISION, SCHEDULE_PAUSED, SCHEDULES};
use cluster::search_attributes::payload;
use persistence::stores::visibility::record::Record;
use persistence::stores::visibility::value::{Value, ValueType};
use prost::Message as _;
use proto::temporal::api::common::v1::{Memo, Payload, SearchAttributes};
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use proto::temporal::api::schedule::v1 as public;
use proto::temporal::api::schedule::v1::schedule_action::Action;
use proto::temporal::api::workflowservice::v1::DescribeScheduleResponse;
use workflow::{Listing, Timestamp};

use super::schedule::Schedule;
use super::spec::{Search, Spec, TooManyExclusions};
use super::times::TIMES_MAX;

const WORKFLOW_TYPE: &str = "temporal-sys-scheduler-workflow";
const TASK_QUEUE: &str = "temporal-sys-per-ns-tq";
/// Memo field that has the schedule's list info in visibility.
const LIST_FIELD: &str = "ScheduleInfo";

const FUTURE_TIMES: usize = 10;
/// List entries have fewer times, actions, and parts of the specification.
const LISTED_TIMES: usize = 5;
const LISTED_ACTIONS: usize = 5;
const LISTED_PARTS: usize = 10;
const MATCHING_TIMES_MAX: usize = 1000;

impl Schedule {
    /// Token that a client must send back to change just this state.
    pub fn conflict_token(&self) -> Bytes {
        Bytes::copy_from_slice(&self.conflict_token.to_be_bytes())
    }

    pub fn described(&self) -> DescribeScheduleResponse {
        let mut schedule = self.definition.clone();
        clean(schedule.spec.as_mut());
        DescribeScheduleResponse {
            schedule: Some(schedule),
            info: Some(self.info()),
            memo: Some(self.memo.clone()).filter(|memo| !memo.fields.is_empty()),
            search_attributes: Some(self.search_attributes.clone())
                .filter(|attributes| !attributes.indexed_fields.is_empty()),
            conflict_token: self.conflict_token(),
        }
    }

    #[expect(deprecated, reason = "older clients still look at what is wrong with a specification")]
    fn info(&self) -> public::ScheduleInfo {
        let spec = self.spec();
        public::ScheduleInfo {
            action_count: self.counts.actions,
            missed_catchup_window: self.counts.missed_catchup_window,
            overlap_skipped: self.counts.overlap_skipped,
            buffer_dropped: self.counts.buffer_dropped,
            buffer_size: i64::try_from(self.work.buffer.len()).unwrap_or(i64::MAX),
            running_workflows: self.work.running.iter().map(|run| run.execution.clone()).collect(),
            recent_actions: self.recent_actions.clone(),
            future_action_times: spec.as_ref().map(|spec| self.future_times(spec, FUTURE_TIMES)).unwrap_or_default(),
            create_time: Some(self.moments.created_at.into()),
            update_time: self.moments.updated_at.map(Into::into),
            invalid_schedule_error: spec.err().unwrap_or_default(),
            ..Default::default()
        }
    }

    /// The next action times, at most as many as remaining actions.
    fn future_times(&self, spec: &Spec, count: usize) -> Vec<prost_types::Timestamp> {
        let state = self.state();
        let left = usize::try_from(state.remaining_actions).unwrap_or(0);
        let count = if state.limited_actions { count.min(left) } else { count };
        let mut times = Vec::new();
        let (seed, mut moment) = (self.jitter_seed(), self.moments.processed_at);
        let mut budget = spec.budget();
        let mut search = Search::new(spec, &seed, &mut budget);
        for _ in 0..TIMES_MAX {
            let Ok(Some(next)) = search.next_time(moment) else { break };
            moment = next.at;
            if times.len() < count && self.moments.updated_at.is_none_or(|updated_at| updated_at <= moment) {
                times.push(moment.into());
            }
            if times.len() == count {
                break;
            }
        }
        times
    }

    /// The action times after `from`, up to and including `to`.
    pub fn matching_times(
        &self,
        spec: &Spec,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<prost_types::Timestamp>, TooManyExclusions> {
        let (seed, mut moment, mut budget) = (self.jitter_seed(), from, spec.budget());
        let mut search = Search::new(spec, &seed, &mut budget);
        let mut times = Vec::new();
        while times.len() < MATCHING_TIMES_MAX {
            let Some(next) = search.next_time(moment)?.filter(|next| next.at <= to) else { break };
            moment = next.at;
            times.push(moment.into());
        }
        Ok(times)
    }

    pub fn list_info(&self) -> public::ScheduleListInfo {
        let spec = self.spec();
        let mut told = self.definition.spec.clone().unwrap_or_default();
        told.timezone_data.clear();
        told.structured_calendar.truncate(LISTED_PARTS);
        told.exclude_structured_calendar.truncate(LISTED_PARTS);
        told.interval.truncate(LISTED_PARTS);
        let action = self.definition.action.as_ref().and_then(|action| action.action.as_ref());
        let (notes, paused) =
            self.definition.state.as_ref().map(|state| (state.notes.clone(), state.paused)).unwrap_or_default();
        let first_action = self.recent_actions.len().saturating_sub(LISTED_ACTIONS);
        public::ScheduleListInfo {
            spec: Some(told),
            workflow_type: action.and_then(|Action::StartWorkflow(start)| start.workflow_type.clone()),
            notes,
            paused,
            recent_actions: self.recent_actions[first_action..].to_vec(),
            future_action_times: spec.map(|spec| self.future_times(&spec, LISTED_TIMES)).unwrap_or_default(),
            ..Default::default()
        }
    }

    /// Its visibility record, in the namespace division of schedules.
    pub fn visible(&self) -> Record {
        let mut memo = self.memo.clone();
        memo.fields.insert(LIST_FIELD.to_owned(), list_payload(&self.list_info()));
        Record {
            namespace_id: self.key.namespace_id,
            workflow_id: Arc::clone(&self.key.schedule_id),
            run_id: self.key.run_id,
            workflow_type: WORKFLOW_TYPE.to_owned(),
            task_queue: TASK_QUEUE.to_owned(),
            status: WorkflowExecutionStatus::Running,
            started_at: self.moments.created_at,
            executes_at: self.moments.created_at,
            closed: None,
            memo,
            search_attributes: self.visible_attributes(),
            parent: None,
            root: None,
            listing: Listing { started_in: self.key.listed_in, closed_in: None },
            version: self.version,
        }
    }

    /// Its own search attributes, plus those that mark it as a schedule and as paused or not.
    pub fn visible_attributes(&self) -> SearchAttributes {
        let mut attributes = self.search_attributes.clone();
        let division = Value::Keyword(SCHEDULES.to_owned());
        let paused = Attribute::Indexed { name: SCHEDULE_PAUSED.to_owned(), value_type: ValueType::Bool };
        let paused_value = payload::encode(&paused, &Value::Bool(self.is_paused()));
        attributes.indexed_fields.insert(SCHEDULE_PAUSED.to_owned(), paused_value);
        let division = payload::encode(&Attribute::namespace_division(), &division);
        attributes.indexed_fields.insert(NAMESPACE_DIVISION.to_owned(), division);
        attributes
    }
}

/// The list entry of a schedule's visibility record.
pub fn list_entry(
    schedule_id: String,
    memo: Option<Memo>,
    attributes: Option<SearchAttributes>,
) -> public::ScheduleListEntry {
    let mut memo = memo.unwrap_or_default();
    let info = memo.fields.remove(LIST_FIELD).and_then(|told| public::ScheduleListInfo::decode(told.data).ok());
    let mut attributes = attributes.unwrap_or_default();
    attributes.indexed_fields.retain(|name, _| name != SCHEDULE_PAUSED && name != NAMESPACE_DIVISION);
    public::ScheduleListEntry {
        schedule_id,
        memo: Some(memo),
        search_attributes: Some(attributes).filter(|attributes| !attributes.indexed_fields.is_empty()),
        info: info.map(|mut info| {
            clean(info.spec.as_mut());
            info
        }),
    }
}

fn list_payload(info: &public::ScheduleListInfo) -> Payload {
    let encoding = ("encoding".to_owned(), Bytes::from_static(b"binary/plain"));
    Payload { metadata: [encoding].into(), data: info.encode_to_vec().into(), ..Payload::default() }
}

/// Ranges with their ends and steps written out.
fn clean(spec: Option<&mut public::ScheduleSpec>) {
    let Some(spec) = spec else { return };
    for calendar in spec.structured_calendar.iter_mut().chain(&mut spec.exclude_structured_calendar) {
        let public::StructuredCalendarSpec { second, minute, hour, day_of_month, month, year, day_of_week, comment: _ } =
            calendar;
        for range in [second, minute, hour, day_of_month, month, year, day_of_week].into_iter().flatten() {
            range.end = range.end.max(range.start);
            range.step = if range.step == 0 { 1 } else { range.step };
        }
    }
}
