// How each language prints the tool calls in an answer, by operation: the code that follows the streamed text. `answer` is the
// whole answer.

export interface Calls {
  python: string;
  node: string;
  rust: {
    /** The text that `event` adds. */
    text: string;
    calls: string;
  };
}

export const CALLS: Record<string, Calls> = {
  create_chat_completion: {
    python: `for call in answer.choices[0].message.tool_calls or []:
    print(call.function.name, call.function.arguments)
`,
    node: `for (const call of answer.choices[0].message.tool_calls ?? []) {
  console.log(call.function.name, call.function.arguments);
}
`,
    rust: {
      text: "event.text().unwrap_or_default()",
      calls: `    for call in &answer.choices[0].message.tool_calls {
        if let Some(function) = &call.function {
            println!("{} {}", function.name, function.arguments);
        }
    }`,
    },
  },
  create_response: {
    python: `for item in answer.output:
    if item.type == "function_call":
        print(item.name, item.arguments)
`,
    node: `for (const item of answer.output) {
  if (item.type === "function_call") console.log(item.name, item.arguments);
}
`,
    rust: {
      text: "event.text_delta().unwrap_or_default()",
      calls: `    for item in &answer.output {
        if let (Some(name), Some(arguments)) = (&item.name, &item.arguments) {
            println!("{name} {arguments}");
        }
    }`,
    },
  },
  create_message: {
    python: `for block in answer.content:
    if block.type == "tool_use":
        print(block.name, block.to_dict()["input"])
`,
    node: `for (const block of answer.content) {
  if (block.type === "tool_use") console.log(block.name, block.input);
}
`,
    rust: {
      text: "event.text_delta().unwrap_or_default()",
      calls: `    for block in &answer.content {
        if let Some(name) = &block.name {
            println!("{name} {}", json!(block.input));
        }
    }`,
    },
  },
  stream_generate_content: {
    python: `for part in answer.candidates[0].content.parts:
    if part.functionCall:
        print(part.functionCall.name, part.functionCall.to_dict().get("args"))
`,
    node: `for (const { functionCall } of answer.candidates[0].content.parts) {
  if (functionCall) console.log(functionCall.name, functionCall.args);
}
`,
    rust: {
      text: "event.text()",
      calls: `    let content = answer.candidates.first().and_then(|candidate| candidate.content.as_ref());
    for part in content.into_iter().flat_map(|content| &content.parts) {
        if let Some(call) = &part.function_call {
            println!("{} {}", call.name, json!(call.args));
        }
    }`,
    },
  },
};
