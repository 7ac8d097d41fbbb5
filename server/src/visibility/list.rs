//! Lists: a query, a page of the runs that match it, and a token for the next page.

use bytes::Bytes;
use cluster::errors::ServiceError;
use cluster::search_attributes::custom::CustomAttributes;
use prost::Message as _;
use proto::everrow::visibility::ListPageToken;
use proto::temporal::api::workflow::v1::WorkflowExecutionInfo;
use workflow::{NamespaceId, Timestamp};

use super::bounds::Bounds;
use super::order::{PageOrder, Place, as_they_are, by_start, reached, started_at};
use super::query::error::QueryError;
use super::query::filter::Query;
use super::query::{self};
use super::reading::{Gathered, Reading};
use super::record_values::shown;
use super::service::Service;

/// What a list is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    Runs,
    Schedules,
}

/// Which page of which list is wanted.
#[derive(Debug, Clone)]
pub struct ListRequest {
    pub namespace_id: NamespaceId,
    /// The namespace's own search attributes.
    pub custom: CustomAttributes,
    pub among: Among,
    pub query: String,
    pub page_size: usize,
    /// Empty for the first page.
    pub token: Bytes,
}

#[derive(Debug, Clone, Default)]
pub struct ListPage {
    pub executions: Vec<WorkflowExecutionInfo>,
    /// Empty if this was the last page.
    pub next_page_token: Bytes,
}

impl Service {
    /// A page of a list.
    pub async fn list(&self, request: ListRequest) -> Result<ListPage, ServiceError> {
        let query = self.parse(&request.query, &request.custom, request.among)?;
        if query.group_by.is_some() {
            let message = "invalid query: operation is not supported: 'group by' clause is not supported in list";
            return Err(ServiceError::InvalidArgument(message.to_owned()));
        }
        let asked = TokenScope { namespace_id: request.namespace_id, query_hash: hash(&request.query) };
        let from = if request.token.is_empty() {
            ListStart { began_at: self.segments.now(request.namespace_id), after: None }
        } else {
            asked.parse(&request.token, &query)?
        };
        let began_at = from.began_at;
        let _permit = self.permit().await;
        let reading = self.reading(request.namespace_id, &query, from).await?;
        let gathered = reading.gather(request.page_size).await?;
        self.housekeeping.touch(request.namespace_id);
        let is_usual = query.order_by.is_empty();
        Ok(page(gathered, request.page_size, is_usual, |position| asked.token(began_at, position)))
    }

    pub(super) fn parse(&self, text: &str, custom: &CustomAttributes, among: Among) -> Result<Query, ServiceError> {
        let parsed = match among {
            Among::Runs => query::parse(text, custom),
            Among::Schedules => query::parse_for_schedules(text, custom),
        };
        parsed.map_err(|error| ServiceError::InvalidArgument(error.to_string()))
    }

    /// Whether a query can be read at all. What it means is found out when it is asked.
    pub fn check_syntax(&self, text: &str, custom: &CustomAttributes) -> Result<(), ServiceError> {
        match query::parse(text, custom) {
            Err(QueryError::Malformed { what, position, near }) => {
                let near = if near.is_empty() { String::new() } else { format!(" near '{near}'") };
                // The reference reads it without the bracket that it puts around the queries of lists.
                let position = position - 1;
                let message = format!("invalid visibility query: {what} at position {position}{near}");
                Err(ServiceError::InvalidArgument(message))
            }
            Err(
                QueryError::NotSupported(_)
                | QueryError::InvalidExpression(_)
                | QueryError::UnknownAttribute(_)
                | QueryError::NotOfSchedules(_),
            )
            | Ok(_) => Ok(()),
        }
    }

    pub(super) async fn reading<'a>(
        &'a self,
        namespace_id: NamespaceId,
        query: &'a Query,
        from: ListStart,
    ) -> Result<Reading<'a>, ServiceError> {
        Ok(Reading {
            store: &self.store,
            namespace_id,
            segments: self.store.segments(namespace_id).await?,
            filter: query.filter.as_ref(),
            bounds: Bounds::of(query.filter.as_ref()),
            ordering: PageOrder { order_by: &query.order_by, began_at: from.began_at },
            after: from.after,
        })
    }
}

/// Where a list begins, or goes on.
pub(super) struct ListStart {
    pub(super) began_at: Timestamp,
    pub(super) after: Option<Place>,
}

/// The list that a page token belongs to.
struct TokenScope {
    namespace_id: NamespaceId,
    query_hash: u64,
}

impl TokenScope {
    fn token(&self, began_at: Timestamp, position: Place) -> Bytes {
        let namespace_id = Bytes::copy_from_slice(self.namespace_id.0.as_bytes());
        let (began_at, position) = (began_at.0, position.into());
        ListPageToken { namespace_id, query_hash: self.query_hash, began_at, position }.encode_to_vec().into()
    }

    /// A token that we made for this list. One that is forged names a place in it, and no more.
    fn parse(&self, token: &Bytes, query: &Query) -> Result<ListStart, ServiceError> {
        let invalid = || ServiceError::InvalidArgument("Invalid NextPageToken.".into());
        let token = ListPageToken::decode(token.clone()).map_err(|_| invalid())?;
        let is_ours = token.namespace_id == self.namespace_id.0.as_bytes()[..] && token.query_hash == self.query_hash;
        let is_place = match (by_start(&query.order_by), query.order_by.is_empty()) {
            (Some(direction), _) => started_at(&token.position, direction).is_some(),
            (None, true) => reached(&token.position).is_some(),
            (None, false) => true,
        };
        if !is_ours || !is_place {
            return Err(invalid());
        }
        Ok(ListStart { began_at: Timestamp(token.began_at), after: Some(token.position.into()) })
    }
}

fn page(gathered: Gathered, page_size: usize, is_usual: bool, token: impl Fn(Place) -> Bytes) -> ListPage {
    let Gathered { runs, cut_at, .. } = gathered;
    let is_full = runs.len() >= page_size;
    let last = if is_full { runs.last().map(|(place, _)| place.clone()) } else { cut_at };
    let mut records: Vec<_> = runs.into_iter().map(|(_, record)| record).collect();
    if is_usual {
        // Stable: what is the same keeps its place.
        records.sort_by_key(as_they_are);
    }
    ListPage {
        executions: records.into_iter().map(shown).collect(),
        next_page_token: last.map(token).unwrap_or_default(),
    }
}

/// FNV-1a: distinguishes the texts of queries.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests;
