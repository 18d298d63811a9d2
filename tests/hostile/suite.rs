//! The suite itself: all attempts, on every side.

use super::{
    attempts, leftovers,
    side::{Side, Stage},
    swap,
    table::Table,
};
use crate::support::tiers;

/// How many attempts must prove something.
const AT_LEAST: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_out_works_unconfined_and_is_closed_or_stated_in_every_tier() {
    let probed = attempts::all();
    let others = leftovers::attempts().into_iter().chain(swap::attempts());
    let rows: Vec<_> = probed.into_iter().chain(others).collect();
    let mut table = Table::new(&rows);
    let tiers = tiers().await;
    let sides = std::iter::once(Side::Unconfined).chain(tiers.into_iter().map(Side::Tier));
    for side in sides {
        let stage = Stage::new(side.clone()).await;
        let mut verdicts = leftovers::try_all(&stage).await;
        verdicts.extend(swap::try_all(&stage).await);
        let probed = rows.len() - verdicts.len();
        // What ends the broker comes last.
        verdicts.splice(0..0, stage.try_all(&rows[..probed]).await);
        let fields = rows.iter().zip(&verdicts).map(|(row, verdict)| verdict.judge(row, &side));
        table.add(&side.to_string(), fields.collect());
    }
    table.print();
    let wrong = table.wrong();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(table.working() >= AT_LEAST, "only {} attempts work unconfined", table.working());
}
