//! The parts of a conversation that the simulator uses: the question, new tool results, and the number of tokens.

use super::tokens::counted;
use crate::budget::{Budget, BudgetExceeded};
use crate::conversation::{Prompt, PromptTurn};

/// Maximum length of the user's last turn that is considered for the answer, in bytes.
pub(super) const MAX_QUESTION_BYTES: usize = 256 * 1024;

impl Prompt {
    /// The user's last turn with text; empty if there is none.
    pub(crate) fn question(&self) -> &str {
        let question = self.turns.iter().rfind(|turn| is_question(turn)).map_or("", PromptTurn::text);
        &question[..question.floor_char_boundary(MAX_QUESTION_BYTES)]
    }

    /// Tool results after the question.
    pub(super) fn fresh_results(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        let start = self.turns.iter().rposition(is_question).map_or(0, |at| at + 1);
        self.turns[start..].iter().filter_map(|turn| match turn {
            PromptTurn::ToolResult { name, output } => Some((name.as_deref(), output.as_str())),
            _ => None,
        })
    }

    /// Tokens of the whole prompt, including tools and images.
    pub(crate) fn tokens(&self, budget: &Budget) -> Result<usize, BudgetExceeded> {
        let mut tokens = self.media.tokens;
        for turn in &self.turns {
            tokens += counted(turn.text(), budget)?;
        }
        for tool in &self.tools {
            let parameters = tool.parameters.value().to_string();
            tokens += counted(&tool.name, budget)? + counted(&parameters, budget)?;
        }
        Ok(tokens)
    }
}

/// A turn with only images isn't a question: in chat, images from a tool are a turn of their own.
fn is_question(turn: &PromptTurn) -> bool {
    matches!(turn, PromptTurn::User(text) if !text.is_empty())
}
