use super::*;
use crate::backend::cpu::simd::Level;
use crate::golden::baseline;

fn model() -> (ModelConfig, ModelParams) {
    let config = ModelConfig {
        c: 12,
        n_head: 2,
        head_size: 6,
        n_rwkv: 1,
        n_attn: 1,
        ffn: 20,
        lora: 3,
        seq_len: 8,
        chunk_size: 8,
        top_k: 0,
    };
    let params = ModelParams::new(&config);
    (config, params)
}

fn gradients(params: &ModelParams) -> Vec<f32> {
    let mut grads = vec![0.0; params.arena_len];
    for p in &params.table {
        for (i, g) in p.id.of_mut(&mut grads).iter_mut().enumerate() {
            *g = ((i * 7 + p.id.index()) as f32).sin() * 0.1;
        }
    }
    grads
}

fn trained(settings: &Settings, threads: usize, level: Level) -> (State, Vec<StepReport>) {
    let (config, params) = model();
    let team = Team::new(threads, level).expect("threads");
    let optimizer = Optimizer::new(settings, &params);
    let mut state = optimizer.start(&team, &config, &params, 5);
    let reports = (0..3).map(|step| {
        let report = optimizer.apply(&team, &mut state, &mut gradients(&params), step);
        optimizer.refresh(&team, &mut state);
        report
    });
    let reports = reports.collect();
    (state, reports)
}

#[test]
fn a_step_is_the_same_for_any_team() {
    for opt in [Opt::AdamW, Opt::Sr4] {
        for scale_lr_mode in [ScaleLrMode::Lr, ScaleLrMode::Grad] {
            let settings = Settings { opt, scale_lr_mode, weight_decay: 0.1, grad_clip: 0.5, ..baseline() };
            let expected = trained(&settings, 1, Level::PORTABLE);
            for level in Level::available() {
                assert_eq!(trained(&settings, 2, level), expected, "{opt:?} {scale_lr_mode:?} {level}");
            }
        }
    }
}

#[test]
fn every_weight_is_trained_and_every_gap_stays_zero() {
    let (_, params) = model();
    let start = {
        let (config, params) = model();
        let mut arena = vec![0.0; params.arena_len];
        init_params(&config, &params, 5, &mut arena);
        arena
    };
    let (state, _) = trained(&baseline(), 1, Level::PORTABLE);
    let mut covered = vec![false; params.arena_len];
    for p in &params.table {
        covered[p.id.range()].fill(true);
        let moved = p.id.range().filter(|&i| state.weights[i] != start[i]).count();
        assert!(moved * 10 > p.id.len() * 9, "{}: {moved} of {}", p, p.id.len());
    }
    assert!((0..params.arena_len).all(|i| covered[i] || (state.weights[i], state.m[i], state.v[i]) == (0.0, 0.0, 0.0)));
}

#[test]
fn sr4_leaves_the_moments_of_its_tensors_alone() {
    let (_, params) = model();
    let (state, _) = trained(&Settings { opt: Opt::Sr4, ..baseline() }, 1, Level::PORTABLE);
    let sr4 = state.sr4.expect("SR4's state");
    for (p, place) in params.ternary() {
        assert!(p.id.of(&state.m).iter().chain(p.id.of(&state.v)).all(|&x| x == 0.0), "{p}");
        let (q, scale) = (&sr4.q[place.base..][..p.id.len()], &sr4.scale[place.scale..][..p.id.cols()]);
        for (i, &w) in p.id.of(&state.weights).iter().enumerate() {
            assert_eq!(w, scale[i % scale.len()] * sr4::ternary(q[i], 2) as f32, "{p}");
        }
    }
}

#[test]
fn clipping_bounds_the_norm_and_reports_the_one_before() {
    let (_, params) = model();
    let team = Team::new(1, Level::PORTABLE).expect("threads");
    let settings = Settings { grad_clip: 0.5, ..baseline() };
    let optimizer = Optimizer::new(&settings, &params);
    let (config, _) = model();
    let mut state = optimizer.start(&team, &config, &params, 5);
    let mut grads = gradients(&params);
    let before = optimizer.norm(&team, &grads);
    let report = optimizer.apply(&team, &mut state, &mut grads, 0);
    assert_eq!(report.grad_norm, before);
    assert!(before > 1.0);
    assert!((optimizer.norm(&team, &grads) - 0.5).abs() < 1e-6);
}

#[test]
fn decay_of_matrices_spares_vectors_and_scales() {
    let pulled = |decay, opt| {
        let settings = Settings { decay, opt, lr: 1.0, lr_min: 1.0, scale_lr: 1.0, weight_decay: 0.5, ..baseline() };
        let (config, params) = model();
        let team = Team::new(1, Level::PORTABLE).expect("threads");
        let optimizer = Optimizer::new(&settings, &params);
        let mut state = optimizer.start(&team, &config, &params, 5);
        // No gradient: whatever moves, moved by decay.
        optimizer.apply(&team, &mut state, &mut vec![0.0; params.arena_len], 0);
        let block = &params.rwkv[0];
        (block.ln1_w.of(&state.weights)[0], block.r_k.of(&state.weights)[0], state.sr4.map(|s| s.scale[0]))
    };
    let scale = sr4::initial_scale(ScaleInit::FanIn, 12);
    assert_eq!(pulled(Decay::All, Opt::Sr4), (0.5, -0.02, Some(scale * 0.5)));
    assert_eq!(pulled(Decay::Matrices, Opt::Sr4), (1.0, -0.04, Some(scale)));
    assert_eq!(pulled(Decay::All, Opt::AdamW), (0.5, -0.02, None));
    assert_eq!(pulled(Decay::Matrices, Opt::AdamW), (1.0, -0.04, None));
}

#[test]
fn the_groups_norms_are_those_of_their_tensors() {
    let (_, params) = model();
    let team = Team::new(1, Level::PORTABLE).expect("threads");
    let report = Optimizer::new(&baseline(), &params).measure(&team, &gradients(&params), 0);
    let grads = gradients(&params);
    let norm = |of: &dyn Fn(&str) -> bool| {
        let tensors = params.table.iter().filter(|p| of(&p.name)).flat_map(|p| p.id.of(&grads));
        tensors.map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt()
    };
    let head = |name: &str| name == "head" || name.starts_with("ln_out");
    let groups = report.grad_norms;
    for (found, expected) in [
        (groups.embedding, norm(&|name| name == "emb")),
        (groups.blocks, norm(&|name| name != "emb" && !head(name))),
        (groups.head, norm(&head)),
        (report.grad_norm, norm(&|_| true)),
    ] {
        assert!(expected > 0.0 && (found - expected).abs() < 1e-12 * expected, "{found} {expected}");
    }
}
