//! Characters that show nothing, and by which text could say to a model what no person sees.

/// Whether a character is dropped: format characters (general category Cf: bidirectional overrides, zero-width joiners, tags,
/// the byte order mark), and what else Unicode calls `Default_Ignorable_Code_Point` (variation selectors, fillers), of
/// Unicode 16, and DEL.
pub(super) fn is_ignorable(character: char) -> bool {
    if character < '\u{7f}' {
        return false;
    }
    matches!(
        character,
        '\u{7f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_character_is_dropped_and_no_letter_is() {
        let format = regex::Regex::new(r"^(?:\p{Cf}|\p{Default_Ignorable_Code_Point})$").unwrap();
        let mut buffer = [0; 4];
        for character in ('\u{0}'..=char::MAX).filter(|&c| c != '\u{7f}') {
            let named = format.is_match(character.encode_utf8(&mut buffer));
            assert_eq!(is_ignorable(character), named, "{:?}", character as u32);
        }
    }
}
