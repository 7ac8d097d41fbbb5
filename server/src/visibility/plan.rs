//! The query planner of lists: reads index candidates or scans runs in list order; and its explanation.

use cluster::errors::ServiceError;
use cluster::search_attributes::custom::CustomAttributes;
use persistence::error::StoreError;
use workflow::NamespaceId;

use super::access::accesses;
use super::candidates::{FEW, MANY, Search};
use super::list::{Among, ListStart};
use super::order::by_start;
use super::query::filter::Direction;
use super::reading::{Gathered, Reading};
use super::service::Service;

/// Rows scanned for each run of a page before an index scan of up to `MANY` candidates is tried.
const SCANNED_PER_RUN: usize = 10;

impl Reading<'_> {
    /// The next runs, in the order of the list.
    pub(super) async fn gather(&self, limit: usize) -> Result<Gathered, StoreError> {
        if let Some(candidates) = self.search(FEW).await?.candidates {
            return self.first_of(candidates, limit).await;
        }
        let has_index = !accesses(self.filter).is_empty();
        if let Some(sequence) = self.sequence() {
            let scanned_max =
                if has_index { (SCANNED_PER_RUN * limit).min(self.scanned_max()) } else { self.scanned_max() };
            let gathered = self.in_sequence(sequence, limit, scanned_max).await?;
            if gathered.cut_at.is_none() || gathered.is_full || !has_index {
                return Ok(gathered);
            }
        }
        if has_index && let Some(candidates) = self.search(MANY).await?.candidates {
            return self.first_of(candidates, limit).await;
        }
        match self.sequence() {
            Some(sequence) => self.in_sequence(sequence, limit, self.scanned_max()).await,
            None => self.sorted(limit).await,
        }
    }

    /// The row order that equals the order of the list, if there is one.
    fn sequence(&self) -> Option<Sequence> {
        match by_start(self.ordering.order_by) {
            Some(direction) => Some(Sequence::ByStart(direction)),
            None => self.ordering.order_by.is_empty().then_some(Sequence::Usual),
        }
    }

    async fn in_sequence(&self, sequence: Sequence, limit: usize, scanned_max: usize) -> Result<Gathered, StoreError> {
        match sequence {
            Sequence::Usual => self.in_order(limit, scanned_max).await,
            Sequence::ByStart(direction) => self.by_start(direction, limit, scanned_max).await,
        }
    }
}

/// A row order that lists can be read in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sequence {
    Usual,
    ByStart(Direction),
}

impl Service {
    /// Explains the plan of a list: segments, statuses, index candidates and scan.
    pub async fn explain(
        &self,
        namespace_id: NamespaceId,
        custom: &CustomAttributes,
        text: &str,
    ) -> Result<Vec<String>, ServiceError> {
        let query = self.parse(text, custom, Among::Runs)?;
        let from = ListStart { began_at: self.segments.now(namespace_id), after: None };
        let reading = self.reading(namespace_id, &query, from).await?;
        let n_within = reading.segments.iter().filter(|of| reading.may_start_in(of, reading.bounds.started)).count();
        let mut lines = vec![format!("segments: {n_within} of {} may have such runs", reading.segments.len())];
        if !reading.bounds.has_open {
            lines.push("open runs: left out".to_owned());
        }
        let statuses: Vec<&str> = reading.bounds.statuses.iter().map(|of| super::query::status::name(*of)).collect();
        lines.push(format!(
            "closed runs: {}",
            if statuses.is_empty() { "left out".to_owned() } else { statuses.join(", ") }
        ));
        let few = reading.search(FEW).await?;
        lines.extend(explained(&few, FEW));
        let order = if by_start(&query.order_by).is_some() { "the order of their starts" } else { "the usual order" };
        lines.push(match (few.candidates, few.tried.is_empty(), reading.sequence().is_some()) {
            (Some(candidates), ..) => format!("plan: read the records of {} candidates, and sort them", candidates.len()),
            (None, true, true) => format!("plan: look at runs in {order}, at most {} for a page", reading.scanned_max()),
            (None, true, false) => "plan: look at all runs within the bounds, and sort them".to_owned(),
            (None, false, true) => format!(
                "plan: look at runs in {order}; if a page takes more than {SCANNED_PER_RUN} for each run, ask the indexes for up to {MANY}"
            ),
            (None, false, false) => {
                format!("plan: ask the indexes for up to {MANY}; if there are more, look at all runs within the bounds")
            }
        });
        Ok(lines)
    }
}

fn explained(search: &Search, most: usize) -> impl Iterator<Item = String> {
    search.tried.iter().map(move |tried| match tried.found {
        Some(found) => format!("{}: names {found}", tried.access),
        None => format!("{}: names more than {most}", tried.access),
    })
}
