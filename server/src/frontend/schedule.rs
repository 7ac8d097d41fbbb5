//! Schedules.

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::count_schedules_response::AggregationGroup;
use scheduler::shown::list_entry;

use super::Frontend;
use super::call::{Call, patiently};
use super::validate::schedule as validate;
use crate::peers::{Among, ListRequest};

const PAGE_MAX: i32 = 1000;

pub(super) async fn create(
    frontend: &Frontend,
    call: Call<public::CreateScheduleRequest>,
) -> Result<public::CreateScheduleResponse, ServiceError> {
    let namespace = frontend.enter_to_start(&call.request.namespace).await?;
    let now = frontend.env.now();
    let checked = validate::create(call.request, namespace.search_attributes(), now)?;
    let ask = request::CreateScheduleRequest { namespace_id: namespace.id.to_string(), request: Some(checked) };
    patiently(&frontend.env, call.deadline, || async { frontend.peers.history()?.create_schedule(ask.clone()).await })
        .await
}

pub(super) async fn describe(
    frontend: &Frontend,
    call: Call<public::DescribeScheduleRequest>,
) -> Result<public::DescribeScheduleResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    validate::schedule_id(&call.request.schedule_id)?;
    let ask = request::DescribeScheduleRequest { namespace_id: namespace.id.to_string(), request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async { frontend.peers.history()?.describe_schedule(ask.clone()).await })
        .await
}

pub(super) async fn update(
    frontend: &Frontend,
    call: Call<public::UpdateScheduleRequest>,
) -> Result<public::UpdateScheduleResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let checked = validate::update(call.request, namespace.search_attributes())?;
    let ask = request::UpdateScheduleRequest { namespace_id: namespace.id.to_string(), request: Some(checked) };
    patiently(&frontend.env, call.deadline, || async { frontend.peers.history()?.update_schedule(ask.clone()).await })
        .await
}

pub(super) async fn patch(
    frontend: &Frontend,
    call: Call<public::PatchScheduleRequest>,
) -> Result<public::PatchScheduleResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let checked = validate::patch(call.request, frontend.env.now())?;
    let ask = request::PatchScheduleRequest { namespace_id: namespace.id.to_string(), request: Some(checked) };
    patiently(&frontend.env, call.deadline, || async { frontend.peers.history()?.patch_schedule(ask.clone()).await })
        .await
}

pub(super) async fn delete(
    frontend: &Frontend,
    call: Call<public::DeleteScheduleRequest>,
) -> Result<public::DeleteScheduleResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    validate::schedule_id(&call.request.schedule_id)?;
    let ask = request::DeleteScheduleRequest { namespace_id: namespace.id.to_string(), request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async { frontend.peers.history()?.delete_schedule(ask.clone()).await })
        .await
}

pub(super) async fn list_matching_times(
    frontend: &Frontend,
    call: Call<public::ListScheduleMatchingTimesRequest>,
) -> Result<public::ListScheduleMatchingTimesResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    validate::schedule_id(&call.request.schedule_id)?;
    let namespace_id = namespace.id.to_string();
    let ask = request::ListScheduleMatchingTimesRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.list_schedule_matching_times(ask.clone()).await
    })
    .await
}

pub(super) async fn list(
    frontend: &Frontend,
    call: Call<public::ListSchedulesRequest>,
) -> Result<public::ListSchedulesResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let asked = call.request.maximum_page_size;
    let page_size = if asked <= 0 { PAGE_MAX } else { asked.min(PAGE_MAX) };
    let request = ListRequest {
        namespace_id: namespace.id,
        custom: namespace.custom_attributes.clone(),
        among: Among::Schedules,
        query: call.request.query,
        page_size: usize::try_from(page_size).expect("it is positive"),
        token: call.request.next_page_token,
    };
    let page =
        patiently(&frontend.env, call.deadline, || async { frontend.peers.visibility()?.list(request.clone()).await })
            .await?;
    let schedules = page
        .executions
        .into_iter()
        .map(|run| list_entry(run.execution.unwrap_or_default().workflow_id, run.memo, run.search_attributes));
    Ok(public::ListSchedulesResponse { schedules: schedules.collect(), next_page_token: page.next_page_token })
}

pub(super) async fn count(
    frontend: &Frontend,
    call: Call<public::CountSchedulesRequest>,
) -> Result<public::CountSchedulesResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let counted = patiently(&frontend.env, call.deadline, || async {
        let visibility = frontend.peers.visibility()?;
        visibility.count(namespace.id, &namespace.custom_attributes, Among::Schedules, &call.request.query).await
    })
    .await?;
    let groups = counted.groups.into_iter();
    let groups = groups.map(|group| AggregationGroup { group_values: group.group_values, count: group.count });
    Ok(public::CountSchedulesResponse { count: counted.count, groups: groups.collect() })
}
