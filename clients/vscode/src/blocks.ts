/** Fenced code blocks (CommonMark 4.5) of an answer, and the files that they are meant for. */

/** The lines of a block without its fences, counted from 0, and what stands around them. */
export interface CodeBlock {
  firstLine: number;
  lastLine: number;
  info: string;
  content: readonly string[];
  lineBefore: string;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const PATH = /(?:[\w@.-]+\/)*[\w@-][\w@.-]*\.\w{1,8}/;
const COMMENT = /^\s*(?:\/\/|#|--|;|\/\*|<!--)\s*(?:file(?:name|path)?\s*[:=]?\s*|path\s*[:=]\s*)?/i;

/** The blocks of a text that are closed and not empty. */
export function codeBlocks(text: string): CodeBlock[] {
  const lines = text.split(/\r\n|\n|\r/);
  const blocks: CodeBlock[] = [];
  let open: { fence: string; info: string; line: number } | null = null;
  lines.forEach((line, at) => {
    const [, fence = "", info = ""] = FENCE.exec(line) ?? [];
    if (open === null) {
      open = fence === "" ? null : { fence, info: info.trim(), line: at };
    } else if (info.trim() === "" && fence[0] === open.fence[0] && fence.length >= open.fence.length) {
      const content = lines.slice(open.line + 1, at);
      if (content.some((one) => one.trim() !== "")) {
        const lineBefore = lines.slice(0, open.line).findLast((one) => one.trim() !== "") ?? "";
        blocks.push({
          firstLine: open.line + 1,
          lastLine: at - 1,
          info: open.info,
          content,
          lineBefore,
        });
      }
      open = null;
    }
  });
  return blocks;
}

/** The path that a block names behind its fence, in a comment at its top, or in the line before. */
export function pathOfBlock(block: CodeBlock): string | null {
  const info = block.info.replace(/^\w+(?=$|[\s:])/, "");
  const [first = ""] = block.content;
  const comment = COMMENT.test(first) ? first.replace(COMMENT, "").replace(/\s*(?:\*\/|-->)\s*$/, "") : "";
  const before = /^\W*(?:`[^`]+`|\*\*[^*]+\*\*|[^\s`*]+)\W*$/.test(block.lineBefore) ? block.lineBefore : "";
  for (const [text, isWhole] of [[info, false], [comment, true], [before, false]] as const) {
    const found = PATH.exec(text)?.[0];
    if (found !== undefined && (!isWhole || found === text.trim())) {
      return found;
    }
  }
  return null;
}
