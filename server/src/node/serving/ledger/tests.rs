//! Admission, refusal for lack of room, and closing of connections.

use super::*;

const MIB: usize = 1 << 20;

fn ledger() -> Arc<Ledger> {
    Ledger::new(64 * MIB, 3)
}

fn connected(ledger: &Arc<Ledger>) -> Arc<Account> {
    let account = ledger.open().expect("there is room");
    account.received(HANDSHAKE_BYTES);
    account
}

/// A call that has sent `bytes` of its request, and not the end.
fn uploading(account: &Arc<Account>, bytes: usize) -> CallCharge {
    let call = CallCharge::new(Arc::clone(account), 0).unwrap();
    call.received(bytes).unwrap();
    call
}

async fn later(duration: Duration) {
    tokio::time::advance(duration).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_has_its_share_and_gives_it_back() {
    let ledger = ledger();
    let account = connected(&ledger);
    let call = uploading(&account, 31 * MIB);
    assert_eq!(call.received(2 * MIB), Err(Full::Connection));
    let other = connected(&ledger);
    drop(uploading(&other, MIB));
    drop(call);
    assert_eq!((ledger.held.load(Relaxed), account.held.load(Relaxed), account.waiting.load(Relaxed)), (0, 0, 0));
    assert_eq!(account.n_calls.load(Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn every_step_of_a_call_is_given_back_in_the_end() {
    let ledger = ledger();
    let account = connected(&ledger);
    let call = uploading(&account, 3 * MIB);
    assert_eq!(account.waiting.load(Relaxed), 3 * MIB + CALL_BYTES);
    call.arrived();
    assert_eq!((account.waiting.load(Relaxed), account.held.load(Relaxed)), (0, 3 * MIB + CALL_BYTES));
    call.answered();
    assert_eq!(account.held.load(Relaxed), CALL_BYTES);
    assert!(call.send(CALL_BYTES).unwrap().is_none());
    assert_eq!(account.waiting.load(Relaxed), CALL_BYTES, "a small answer waits on the call's own charge");
    call.arrived();
    let part = call.send(2 * MIB).unwrap().unwrap();
    assert_eq!((account.waiting.load(Relaxed), account.held.load(Relaxed)), (2 * MIB, 2 * MIB + CALL_BYTES));
    drop(call);
    drop(part);
    assert_eq!((ledger.held.load(Relaxed), account.held.load(Relaxed), account.waiting.load(Relaxed)), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn small_requests_come_in_when_large_ones_have_taken_their_part() {
    let ledger = ledger();
    let (one, other) = (connected(&ledger), connected(&ledger));
    let _held = [uploading(&one, 24 * MIB), uploading(&other, 23 * MIB)];
    let third = connected(&ledger);
    let call = CallCharge::new(third, 0).unwrap();
    assert_eq!(call.received(2 * MIB), Err(Full::Server));
    call.received(SMALL_BYTES_MAX).unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_worst_hoarder_goes_when_there_is_no_room() {
    let ledger = ledger();
    let (worse, better) = (connected(&ledger), connected(&ledger));
    let _held = [uploading(&worse, 27 * MIB), uploading(&better, 20 * MIB)];
    let third = connected(&ledger);
    let call = CallCharge::new(third, 0).unwrap();
    assert_eq!(call.received(MIB), Err(Full::Server), "nobody has paused yet");
    later(PAUSE_MAX).await;
    call.received(MIB).unwrap();
    assert_eq!((worse.is_closing(), better.is_closing()), (true, false));
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_worked_on_are_no_hoard() {
    let ledger = ledger();
    let (one, other) = (connected(&ledger), connected(&ledger));
    let held = [uploading(&one, 27 * MIB), uploading(&other, 20 * MIB)];
    held.iter().for_each(CallCharge::arrived);
    later(STALL_MAX * 2).await;
    let call = CallCharge::new(connected(&ledger), 0).unwrap();
    assert_eq!(call.received(MIB), Err(Full::Server));
    assert!(!one.is_closing() && !other.is_closing());
    assert_eq!(ledger.sweep(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn connections_that_say_nothing_or_do_not_move_are_swept() {
    let ledger = ledger();
    let (silent, idle, stalled) = (ledger.open().unwrap(), connected(&ledger), connected(&ledger));
    silent.received(HANDSHAKE_BYTES - 1);
    let _call = uploading(&stalled, 1);
    assert_eq!(ledger.sweep(), (0, 0));
    later(HANDSHAKE_TIMEOUT).await;
    assert_eq!(ledger.sweep(), (1, 0));
    silent.closed().await;
    silent.end();
    later(STALL_MAX).await;
    assert_eq!(ledger.sweep(), (0, 1));
    stalled.closed().await;
    assert!(!idle.is_closing());
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_makes_room_for_a_new_one_and_a_busy_one_does_not() {
    let ledger = ledger();
    let accounts = [connected(&ledger), connected(&ledger), connected(&ledger)];
    let _busy = uploading(&accounts[0], 1);
    later(Duration::from_secs(1)).await;
    // The second one has been used since.
    drop(uploading(&accounts[1], 1));
    let fourth = connected(&ledger);
    assert!(accounts[2].is_closing() && !accounts[1].is_closing() && !accounts[0].is_closing());
    let _also_busy = [uploading(&accounts[1], 1), uploading(&fourth, 1)];
    assert!(ledger.open().is_none());
    accounts[0].end();
    assert!(ledger.open().is_some());
}
