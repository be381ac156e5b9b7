//! Cores of a NUMA node.

/// Cores of a node that are among `allowed`; none where the system does not tell, or none is allowed.
pub fn cores_of_node(node: u32, allowed: &[usize]) -> Vec<usize> {
    let text = std::fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist")).unwrap_or_default();
    let of_node = parse(&text);
    allowed.iter().copied().filter(|core| of_node.iter().any(|range| range.contains(core))).collect()
}

/// Reads a list such as `0-3,8,10-11`; what is no range is left out.
fn parse(text: &str) -> Vec<std::ops::RangeInclusive<usize>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(parse("0-3,8,10-11\n"), [0..=3, 8..=8, 10..=11]);
        assert!(parse("").is_empty() && parse("x-1").is_empty());
    }

    #[test]
    fn an_unknown_node_has_no_cores() {
        assert!(cores_of_node(u32::MAX, &[0, 1]).is_empty());
    }
}
