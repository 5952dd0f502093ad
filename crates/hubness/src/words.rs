//! Numbers and lists in messages.

/// The first ten values, then `, …` if there are more.
pub(crate) fn first_ten<T: ToString>(all: &[T]) -> String {
    let first: Vec<_> = all.iter().take(10).map(T::to_string).collect();
    let more = if all.len() > first.len() { ", …" } else { "" };
    format!("{}{more}", first.join(", "))
}

/// `1 row`, `2 rows`.
pub(crate) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_are_listed() {
        assert_eq!(first_ten(&[1, 2]), "1, 2");
        let all: Vec<_> = (0..11).collect();
        assert_eq!(first_ten(&all), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …");
    }
}
