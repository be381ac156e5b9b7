//! What a plan accepts, the trainer trains: the ends of the ranges, and every option at least once.

use std::sync::Arc;

use diesweep::backend::cpu::simd::Level;
use diesweep::backend::cpu::team::Team;
use diesweep::data::Corpus;
use diesweep::plan::CorpusInfo;
use diesweep::settings::Data;
use diesweep::sweep;
use diesweep::trainer::{Progress, Run};

const TINY: &str = "C = 8\nn_head = 2\nhead_size = 4\nn_rwkv = 1\nn_attn = 1\nffn = 8\nlora = 2\nseq_len = 8\n\
    steps = 3\neval_every = 2\neval_batches = 1\ntest_batches = 2\n";

/// Settings on top of a tiny model; a repeated key wins over it.
const CASES: &[&str] = &[
    "",
    "C = 2\nn_head = 1\nhead_size = 2\nffn = 2\nlora = 2\nseq_len = 1\nsteps = 1",
    "C = 15\nn_head = 5\nhead_size = 3\nffn = 7\nlora = 5\nseq_len = 13",
    "C = 6\nn_head = 6\nhead_size = 1",
    "n_rwkv = 0",
    "n_attn = 0",
    "n_rwkv = 1\nn_attn = 3",
    "chunk_size = 3\nmoba_top_k = 1",
    "chunk_size = 1\nmoba_top_k = 1048576",
    "chunk_size = 1048576\nmoba_top_k = 4",
    "batch = 3\naccum_steps = 2",
    "lora = 64\nffn = 129",
    "eval_every = 1000000000\nsteps = 4",
    "test_batches = \"all\"",
    "lr = 0\nlr_min = 0\nscale_lr = 0",
    "beta1 = 0\nbeta2 = 0",
    "weight_decay = 0.1\ndecay = \"matrices\"",
    "warmup_steps = 1000000000\ngrad_clip = 1e-3",
    "preset = \"reference\"",
    "q_clamp = 127\ntheta = 127\ntarget_step = 50",
    "q_clamp = 3\ntheta = 1\ndither = false",
    "target_step = 0",
    "diverge_above = 1e-3",
    "on_nonfinite = \"skip\"\nlr = 1e30",
];

fn text(case: &str) -> String {
    let repeated = |key: &str| case.lines().any(|line| line.split(" =").next() == Some(key));
    let tiny: Vec<&str> = TINY.lines().filter(|line| !repeated(line.split(" =").next().unwrap_or(line))).collect();
    format!(
        "name = \"accepted\"\nseeds = [18446744073709551615]\n[base]\ndata = \"a\"\n{}\n{case}\n\
         [[arm]]\nname = \"adamw\"\nopt = \"adamw\"\n[[arm]]\nname = \"sr4\"\nopt = \"sr4\"\n",
        tiny.join("\n")
    )
}

#[test]
fn what_a_plan_accepts_is_trained() {
    let bytes: Vec<u8> = (0u32..4000).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let corpus = Corpus::from_bytes("noise", bytes);
    let mut resolver = |_: &Data| Ok(CorpusInfo { path: None, bytes: 4000, digest: "00".to_owned(), entropy: None });
    let team = Arc::new(Team::new(1, Level::current().unwrap()).unwrap());
    for case in CASES {
        let plan = sweep::plan(&text(case), "accepted.toml", &mut resolver).unwrap_or_else(|faults| panic!("{faults}"));
        for planned in plan.runs {
            // Shown where the trainer panics.
            eprintln!("{case:?} {}", planned.arm);
            let mut run = Run::new(&planned.settings, corpus.clone(), team.clone(), None).unwrap();
            let outcome = loop {
                if let Progress::Ended(outcome) = run.advance() {
                    break outcome;
                }
            };
            assert!(outcome.steps <= planned.settings.steps, "{case}");
        }
    }
}
