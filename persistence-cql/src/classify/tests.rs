//! Failures and what they say about a write.

use std::time::Duration;

use scylla::errors::WriteType;

use super::*;

const BOTH: [Write; 2] = [Write::Plain, Write::Conditional];

fn database(error: DbError, message: &str) -> ExecutionError {
    RequestAttemptError::DbError(error, message.to_owned()).into()
}

fn unavailable(consistency: Consistency) -> ExecutionError {
    database(DbError::Unavailable { consistency, required: 2, alive: 1 }, "")
}

fn check_not_applied(error: &ExecutionError, writes: &[Write]) {
    for write in writes {
        assert!(matches!(failed_write(error, *write), StoreError::Unavailable(_)), "{write:?}: {error}");
    }
}

fn check_unknown(error: &ExecutionError, writes: &[Write]) {
    for write in writes {
        assert!(matches!(failed_write(error, *write), StoreError::OutcomeUnknown(_)), "{write:?}: {error}");
    }
}

#[test]
fn what_was_never_sent_was_not_applied() {
    check_not_applied(&ExecutionError::EmptyPlan, &BOTH);
    check_not_applied(&RequestAttemptError::UnableToAllocStreamId.into(), &BOTH);
}

#[test]
fn what_the_database_would_not_take_was_not_applied() {
    for error in [DbError::Invalid, DbError::SyntaxError, DbError::Unauthorized, DbError::IsBootstrapping] {
        check_not_applied(&database(error, ""), &BOTH);
    }
    check_not_applied(&database(DbError::Overloaded, "Request breached global limit"), &BOTH);
}

#[test]
fn hints_that_are_too_many_come_after_the_decision() {
    check_unknown(&database(DbError::Overloaded, "Too many in flight hints: 1024"), &BOTH);
}

#[test]
fn too_few_replicas_refuse_a_conditional_write_only_before_it_is_agreed_upon() {
    check_not_applied(&unavailable(Consistency::LocalSerial), &BOTH);
    check_not_applied(&unavailable(Consistency::LocalQuorum), &[Write::Plain]);
    check_unknown(&unavailable(Consistency::LocalQuorum), &[Write::Conditional]);
}

#[test]
fn timeouts_and_failures_leave_the_outcome_unknown() {
    let consistency = Consistency::LocalSerial;
    for write_type in [WriteType::Cas, WriteType::Simple, WriteType::UnloggedBatch] {
        let timeout = DbError::WriteTimeout { consistency, received: 1, required: 2, write_type };
        check_unknown(&database(timeout, ""), &BOTH);
    }
    let timeout = DbError::ReadTimeout { consistency, received: 1, required: 2, data_present: true };
    check_unknown(&database(timeout, ""), &BOTH);
    check_unknown(&database(DbError::ServerError, ""), &BOTH);
    // CAS_WRITE_UNKNOWN of newer protocols.
    check_unknown(&database(DbError::Other(0x1700), ""), &BOTH);
    check_unknown(&ExecutionError::RequestTimeout(Duration::from_secs(1)), &BOTH);
}
