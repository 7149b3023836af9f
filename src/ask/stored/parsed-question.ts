import { gpuSheets } from '../../hardware/gpu-sheets.js';
import { tokensOf } from './words.js';

export interface ParsedQuestion {
  text: string;
  /** Stems of the meaningful words, in lower case. */
  tokens: ReadonlySet<string>;
  /** Kinds of stages in the question; empty for none. */
  stages: readonly string[];
  /** "Is …", "would …": an answer starts with yes or no. */
  isYesNo: boolean;
  /** Data sheets that match a word of the question ("A100" matches several). */
  gpus: readonly string[];
}

const stageWords: Record<string, RegExp> = {
  prefill: /\b(prefill\w*|ttft|(first|1st) token|prompt processing|process\w* (the |a )?prompt)\b/i,
  decode:
    /\b(decod\w*|tpot|itl|inter[- ]?token|per (output )?token|each token|generation|generat(e|es|ing))\b/i,
  load: /\b(load(s|ing)?|start[- ]?up|download\w*)\b(?! (test|generator|balanc\w*))/i,
  warmup: /\bwarm(s|ing)?[- ]?up\b/i,
  request: /\b(end[- ]to[- ]end|e2e|(whole|entire|per|each|a|one) request)\b/i,
  sampling: /\bsampling\b(?! (rate|interval))/i,
};

export function parseQuestion(text: string): ParsedQuestion {
  return {
    text,
    tokens: tokensOf(text),
    stages: Object.keys(stageWords).filter((kind) => stageWords[kind]!.test(text)),
    isYesNo: yesNo.test(text),
    gpus: gpusOf(text),
  };
}

const yesNo =
  /^\W*(?:(?:and|so|but|hey|ok),?\s+)?(?:is|are|was|were|do|does|did|has|have|had|can|could|would|will|should|am)\b/i;

/** Words of letters and digits that are contained in the name of a data sheet: A100, H200, "RTX 4090", MI300X. */
function gpusOf(text: string): string[] {
  const words = [
    ...text.matchAll(/\b(?:rtx[\s-]?)?[a-z]{0,2}\d{1,4}[a-z]{0,2}(?:[\s-]?(?:ti|super|ada))?\b/gi),
  ]
    .map(([word]) => word.toLowerCase().replaceAll(/[\s-]+/g, ' '))
    .filter((word) => /[a-z]/.test(word) && !/^(?:fp|bs|q|f|int|sm|bf|tf)\d+$/.test(word));
  const names = gpuSheets.flatMap((sheet) => sheet.names);
  return words.flatMap((word) =>
    names.filter((name) =>
      new RegExp(`(?:^|[\\s-])${word.replaceAll(' ', String.raw`[\s-]`)}(?:$|[\\s-])`, 'i').test(name),
    ),
  );
}
