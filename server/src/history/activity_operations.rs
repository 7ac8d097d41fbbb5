//! Operator requests on pending activities, converted to `Input` for the run.

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::workflowservice::v1 as public;
use workflow::{
    ActivityTarget, Input, Jitter, OptionsChange, PauseActivity, Reply, ResetActivity, UnpauseActivity, UpdateActivity,
};

use super::field_mask::camel_case;
use super::service::{Service, Target, namespace_id, span};

impl Service {
    pub async fn pause_activity(
        &self,
        request: request::PauseActivityRequest,
    ) -> Result<public::PauseActivityResponse, ServiceError> {
        use public::pause_activity_request::Activity;
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let target = match request.activity {
            Some(Activity::Id(id)) => ActivityTarget::Id(id),
            Some(Activity::Type(kind)) => ActivityTarget::Type(kind),
            None => return Err(no_target()),
        };
        let (identity, reason, request_id) = (request.identity, request.reason, request.request_id);
        let input = Input::PauseActivity(PauseActivity { target, identity, reason, request_id });
        self.transact(&Target::new(namespace_id, request.execution)?, input).await?;
        Ok(public::PauseActivityResponse {})
    }

    pub async fn unpause_activity(
        &self,
        request: request::UnpauseActivityRequest,
    ) -> Result<public::UnpauseActivityResponse, ServiceError> {
        use public::unpause_activity_request::Activity;
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let target = match request.activity {
            Some(Activity::Id(id)) => ActivityTarget::Id(id),
            Some(Activity::Type(kind)) => ActivityTarget::Type(kind),
            Some(Activity::UnpauseAll(_)) => ActivityTarget::All,
            None => return Err(no_target()),
        };
        let input = Input::UnpauseActivity(UnpauseActivity {
            target,
            reset_attempts: request.reset_attempts,
            reset_heartbeat: request.reset_heartbeat,
            jitter: self.jitter(request.jitter),
        });
        self.transact(&Target::new(namespace_id, request.execution)?, input).await?;
        Ok(public::UnpauseActivityResponse {})
    }

    pub async fn reset_activity(
        &self,
        request: request::ResetActivityRequest,
    ) -> Result<public::ResetActivityResponse, ServiceError> {
        use public::reset_activity_request::Activity;
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let target = match request.activity {
            Some(Activity::Id(id)) => ActivityTarget::Id(id),
            Some(Activity::Type(kind)) => ActivityTarget::Type(kind),
            Some(Activity::MatchAll(_)) => ActivityTarget::All,
            None => return Err(no_target()),
        };
        let input = Input::ResetActivity(ResetActivity {
            target,
            reset_heartbeat: request.reset_heartbeat,
            keep_paused: request.keep_paused,
            restore_original_options: request.restore_original_options,
            jitter: self.jitter(request.jitter),
        });
        self.transact(&Target::new(namespace_id, request.execution)?, input).await?;
        Ok(public::ResetActivityResponse {})
    }

    pub async fn update_activity_options(
        &self,
        request: request::UpdateActivityOptionsRequest,
    ) -> Result<public::UpdateActivityOptionsResponse, ServiceError> {
        use public::update_activity_options_request::Activity;
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let target = match &request.activity {
            Some(Activity::Id(id)) => ActivityTarget::Id(id.clone()),
            Some(Activity::Type(kind)) => ActivityTarget::Type(kind.clone()),
            Some(Activity::MatchAll(_)) => ActivityTarget::All,
            None => return Err(no_target()),
        };
        let run = Target::new(namespace_id, request.execution.clone())?;
        let change = match options_change(request) {
            Ok(change) => change,
            Err(invalid) => {
                // A missing run takes precedence over an invalid change.
                let (shard, key) = self.find(&run).await?;
                shard.read(&key).await?;
                return Err(invalid);
            }
        };
        let input = Input::UpdateActivity(Box::new(UpdateActivity { target, change }));
        let Reply::ActivityOptions(options) = self.transact(&run, input).await? else {
            return Err(ServiceError::Internal(
                "the core answered another question than which options there are".into(),
            ));
        };
        Ok(public::UpdateActivityOptionsResponse { activity_options: Some(*options) })
    }

    fn jitter(&self, span_max: Option<prost_types::Duration>) -> Jitter {
        let (seed, _) = self.env.new_uuid().as_u64_pair();
        Jitter { span: span(span_max).unwrap_or_default(), seed }
    }
}

fn options_change(request: public::UpdateActivityOptionsRequest) -> Result<OptionsChange, ServiceError> {
    let invalid = |message: &str| ServiceError::InvalidArgument(message.into());
    let fields = request.update_mask.map(|mask| mask.paths.iter().map(|path| camel_case(path)).collect::<Vec<_>>());
    if request.restore_original {
        return match fields {
            Some(fields) if !fields.is_empty() => Err(invalid("Both UpdateMask and RestoreOriginal are provided")),
            Some(_) | None => Ok(OptionsChange::Restore),
        };
    }
    let options = request.activity_options.ok_or_else(|| invalid("ActivityOptions are not provided"))?;
    let fields = fields.ok_or_else(|| invalid("UpdateMask is not provided"))?;
    Ok(OptionsChange::Merge { options: Box::new(options), fields })
}

fn no_target() -> ServiceError {
    ServiceError::InvalidArgument("Either Activity.Id or Activity.Type should be set on request.".into())
}
