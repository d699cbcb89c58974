#[sde::app]
pub fn first(words: &[String]) -> &str {
    &words[0]
}
