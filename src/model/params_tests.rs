use super::super::config::tests::default_config;
use super::*;

#[test]
fn the_default_model_has_the_reference_drivers_size() {
    let params = ModelParams::new(&default_config());
    assert_eq!(params.total(), 958_464);
    assert_eq!(params.ternary_len, 786_432);
    assert_eq!(params.scale_len, 4 * (4 * 128 + 512 + 128));
}

#[test]
fn tensors_lie_in_order_aligned_and_apart() {
    let config = ModelConfig { c: 6, n_head: 2, head_size: 3, ffn: 10, lora: 5, n_attn: 2, ..default_config() };
    let params = ModelParams::new(&config);
    let mut end = 0;
    for (i, p) in params.table.iter().enumerate() {
        assert_eq!(p.id.index(), i);
        assert_eq!(p.id.range().start % ALIGN, 0, "{p}");
        assert!(p.id.range().start >= end, "{p}");
        assert_eq!(p.shape.iter().product::<usize>(), p.id.len(), "{p}");
        assert_eq!(p.ternary.is_some(), p.class == Class::Ternary, "{p}");
        end = p.id.range().end;
    }
    assert!(params.arena_len >= end && params.arena_len.is_multiple_of(ALIGN));
}

#[test]
fn handles_and_names_agree() {
    let params = ModelParams::new(&default_config());
    let by_name = |name: &str| params.by_name(name).unwrap_or_else(|| panic!("no {name}")).id;
    assert_eq!(by_name("rwkv1.ffn_value_w"), params.rwkv[1].ffn_value_w);
    assert_eq!(by_name("attn0.receptance_w"), params.attn[0].receptance_w);
    assert_eq!(by_name("head"), params.head);
    assert!(params.by_name("rwkv3.x_r").is_none());
}

#[test]
fn matrices_are_those_of_more_than_one_row() {
    let params = ModelParams::new(&default_config());
    let vectors = ["rwkv0.r_k", "rwkv0.w0", "ln_out_b"];
    let matrices = ["emb", "head", "rwkv0.w1", "attn0.key_w"];
    assert!(vectors.iter().all(|n| !params.by_name(n).expect("a tensor").is_matrix()));
    assert!(matrices.iter().all(|n| params.by_name(n).expect("a tensor").is_matrix()));
}
