//! Figures 5.7 and 5.8: how often blocks are erased under four translation layers.

use crate::reproduce::{Artefact, Claim, Findings, Job, Lab, LabError, Ran};
use hybridsim_report::study::{Axis, Curve, Plot};

/// Figure 5.7.
pub const SMALL: Artefact = Artefact {
    id: "000/fig5.7",
    title: "Erases per block: 85 MB written once to a 100 MB partition",
    method: "An unaligned sequential file in requests of 240 sectors, as Linux of the time wrote \
             to USB sticks. 2 KB pages, 64 to the block, are assumed; the thesis gives none.",
    run: small,
};

/// Figure 5.8.
pub const LARGE: Artefact = Artefact {
    id: "000/fig5.8",
    title: "Erases per block: 85 MB written fifteen times to a 1 GB medium",
    method: "An aligned sequential file in requests of 256 sectors, fifteen times. Assumed: 2 KB \
             pages, 64 to the block, free blocks used in turn, chains of at most four units, 64 \
             log blocks.",
    run: large,
};

/// Name here, name in the thesis.
const LAYERS: [(&str, &str); 4] =
    [("anand", "ANAND"), ("fmax", "FMAX"), ("page-rewrite", "page"), ("log-block", "log block")];

fn run(lab: &Lab, variant: &str) -> Result<[Wear; 4], LabError> {
    let jobs = LAYERS.map(|(layer, title)| {
        Job::paper("000/wear.toml")
            .named(title)
            .set("workload.generator.variant", format!("\"{variant}\""))
            .set("part.stick.ftl", format!("\"{layer}\""))
    });
    let Ok(ran) = <[Ran; 4]>::try_from(lab.run(&jobs)?) else {
        panic!("a lab returns a result for every job")
    };
    Ok(ran.map(|ran| Wear::of(&ran)))
}

/// How many blocks were erased so often.
struct Wear(Vec<(u32, u64)>);

impl Wear {
    fn of(ran: &Ran) -> Self {
        Self(ran.pictures.wear.values().next().cloned().unwrap_or_default())
    }

    fn blocks(&self) -> u64 {
        self.0.iter().map(|(_, blocks)| blocks).sum()
    }

    /// Share of all blocks erased from `low` to `high` times.
    fn share(&self, low: u32, high: u32) -> f64 {
        let inside = self.0.iter().filter(|(erases, _)| (low..=high).contains(erases));
        inside.map(|(_, blocks)| *blocks as f64).sum::<f64>() / self.blocks() as f64
    }

    /// As [`Wear::share`], of the first `blocks` blocks' worth of medium: the blocks never used
    /// beyond it are left out of the zeros.
    fn share_of_first(&self, blocks: u64, erases: u32) -> f64 {
        let count = self.0.iter().find(|(count, _)| *count == erases).map_or(0, |(_, n)| *n);
        let beyond = if erases == 0 { self.blocks().saturating_sub(blocks) } else { 0 };
        (count.saturating_sub(beyond)) as f64 / blocks.min(self.blocks()) as f64
    }

    fn most(&self) -> f64 {
        self.0.iter().map(|(erases, _)| f64::from(*erases)).fold(0.0, f64::max)
    }

    fn curve(&self, name: &str) -> Curve {
        let share = |(erases, blocks): &(u32, u64)| {
            (f64::from(*erases), *blocks as f64 / self.blocks() as f64)
        };
        Curve::ours(name, self.0.iter().map(share).collect())
    }
}

fn plot(title: &str, wear: &[Wear; 4]) -> Plot {
    Plot {
        title: title.to_owned(),
        caption: "Share of all blocks erased so often.".to_owned(),
        x: Axis::linear("Erases of a block", ""),
        y: Axis::linear("Blocks", "share"),
        curves: LAYERS.iter().zip(wear).map(|((_, title), wear)| wear.curve(title)).collect(),
    }
}

fn small(lab: &Lab) -> Result<Findings, LabError> {
    // 100 MB in blocks of 128 KiB, the partition of the figure.
    const PARTITION_BLOCKS: u64 = 100_000_000 / (128 * 1024);
    let wear = run(lab, "figure-5.7")?;
    let [anand, fmax, page, _] = &wear;
    let mut findings = Findings::default();
    for (wear, name) in [(anand, "ANAND"), (fmax, "FMAX")] {
        let claim = Claim::new("K39", format!("{name}: none of the blocks is erased"));
        findings.row(claim.between("0 erases", 0.0, 0.0).ours(wear.most()));
    }
    let claim = Claim::new("K39", "page: no block is erased more than twice");
    findings.row(claim.at_most("0, 1 or 2", 2.0).ours(page.most()));
    for (erases, published) in [(0, 0.15), (1, 0.79), (2, 0.06)] {
        let claim = format!("page: share of the partition's blocks erased {erases} times");
        let claim = Claim::new("K39", claim).within(published, 0.02);
        findings.row(
            claim
                .ours(page.share_of_first(PARTITION_BLOCKS, erases))
                .remark("published as a curve; these numbers were recomputed from the text"),
        );
    }
    findings.plot(plot("Figure 5.7", &wear));
    Ok(findings)
}

fn large(lab: &Lab) -> Result<Findings, LabError> {
    let wear = run(lab, "figure-5.8")?;
    let [anand, fmax, page, log] = &wear;
    let mut findings = Findings::default();
    let claim = |text: &str| Claim::new("K40", text);
    findings.row(
        claim("ANAND: most blocks are erased once").at_least("most", 0.95).ours(anand.share(1, 1)),
    );
    findings.row(
        claim("FMAX: most blocks are erased twice")
            .between("most", 0.70, 0.90)
            .ours(fmax.share(2, 2)),
    );
    findings.row(
        claim("FMAX: the others three times")
            .between("the rest", 0.10, 0.30)
            .ours(fmax.share(3, 3)),
    );
    findings.row(
        claim("page: a few blocks are erased again and again, 14 times")
            .within(0.08, 0.01)
            .ours(page.share(14, 14)),
    );
    findings.row(
        claim("log block: a few blocks are erased again and again, 13 to 14 times")
            .within(0.09, 0.01)
            .ours(log.share(13, 14)),
    );
    findings.plot(plot("Figure 5.8", &wear));
    Ok(findings)
}
