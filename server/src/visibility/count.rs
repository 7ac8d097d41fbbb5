//! Counts of the runs that match a query, in total or by group.

use std::collections::BTreeMap;
use std::pin::pin;

use cluster::errors::ServiceError;
use cluster::search_attributes::attribute::{Attribute, SystemAttribute};
use cluster::search_attributes::custom::CustomAttributes;
use cluster::search_attributes::payload;
use futures_util::TryStreamExt as _;
use persistence::stores::visibility::record::Record;
use persistence::stores::visibility::value::Value;
use proto::temporal::api::common::v1::Payload;
use proto::temporal::api::workflowservice::v1::CountWorkflowExecutionsResponse;
use proto::temporal::api::workflowservice::v1::count_workflow_executions_response::AggregationGroup;
use workflow::NamespaceId;

use super::bounds::{conjuncts, only_statuses};
use super::candidates::MANY;
use super::list::{Among, ListStart};
use super::query::filter::Query;
use super::query::status;
use super::record_values::{matches, value_of};
use super::service::Service;

/// Counts by group value; `None` for an ungrouped count or an unset attribute.
type Groups = BTreeMap<Option<Value>, i64>;

impl Service {
    pub async fn count(
        &self,
        namespace_id: NamespaceId,
        custom: &CustomAttributes,
        among: Among,
        text: &str,
    ) -> Result<CountWorkflowExecutionsResponse, ServiceError> {
        let query = self.parse(text, custom, among)?;
        let groups = match self.count_by_tally(namespace_id, &query).await? {
            Some(groups) => groups,
            None => self.count_by_reading(namespace_id, &query).await?,
        };
        let count = groups.values().sum();
        let Some(attribute) = &query.group_by else {
            return Ok(CountWorkflowExecutionsResponse { count, groups: Vec::new() });
        };
        let mut groups: Vec<_> = groups.into_iter().collect();
        // Statuses sort by number, as the reference stores them; other values by value.
        groups.sort_by_key(|(value, _)| match value {
            Some(Value::Keyword(name)) if is_status(attribute) => status::number(name),
            _ => None,
        });
        let groups = groups.into_iter().map(|(value, count)| AggregationGroup {
            group_values: vec![value.map_or_else(Payload::default, |value| payload::encode(attribute, &value))],
            count,
        });
        Ok(CountWorkflowExecutionsResponse { count, groups: groups.collect() })
    }

    /// Counts from the shards' tallies, if the query filters and groups by status only.
    async fn count_by_tally(&self, namespace_id: NamespaceId, query: &Query) -> Result<Option<Groups>, ServiceError> {
        let is_by_status = query.group_by.as_ref().is_none_or(is_status);
        let terms = query.filter.as_ref().map_or(&[][..], conjuncts);
        let Some(is_asked_for) = only_statuses(terms).filter(|_| is_by_status) else { return Ok(None) };
        let counts = self.peers.history()?.count_runs(namespace_id).await?;
        let mut groups = Groups::new();
        for (counted, count) in counts.iter() {
            if is_asked_for(counted) {
                let name = Value::Keyword(status::name(counted).to_owned());
                *groups.entry(query.group_by.as_ref().map(|_| name)).or_default() += count;
            }
        }
        Ok(Some(groups))
    }

    async fn count_by_reading(&self, namespace_id: NamespaceId, query: &Query) -> Result<Groups, ServiceError> {
        let _permit = self.permit().await;
        let from = ListStart { began_at: self.segments.now(namespace_id), after: None };
        let reading = self.reading(namespace_id, query, from).await?;
        let mut groups = Groups::new();
        let mut count = |record: &Record| {
            if matches(query.filter.as_ref(), record) {
                let value = query.group_by.as_ref().and_then(|attribute| value_of(record, attribute));
                *groups.entry(value).or_default() += 1;
            }
        };
        let mut turns = reading.turns();
        if let Some(candidates) = reading.search(MANY).await?.candidates {
            let mut records = pin!(reading.records(candidates));
            while let Some(record) = records.try_next().await? {
                count(&record);
                turns.next().await;
            }
            return Ok(groups);
        }
        let mut all = reading.everything();
        while let Some(record) = all.next().await? {
            count(&record);
            turns.next().await;
        }
        Ok(groups)
    }
}

fn is_status(attribute: &Attribute) -> bool {
    *attribute == Attribute::System(SystemAttribute::ExecutionStatus)
}
