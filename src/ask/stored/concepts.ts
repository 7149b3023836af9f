/** Concepts of a question by the words that people use for them; topics combine concepts, so that wording matters less. */
const words = {
  device: /\b(?:gpus?|devices?|accelerators?|graphics cards?|card)\b/,
  host: /\b(?:cpus?|hosts?|python|interpreter|dispatch\w*|schedul\w*)\b/,
  kernel: /\bkernels?\b/,
  launch: /\blaunch\w*/,
  allocation: /\b(?:de)?alloc\w*|\b(?:cuda)?malloc\w*/,
  copy: /\bcop(?:y|ies|ied|ying)\b|\btransfer\w*|\bmemcpy\b/,
  compute: /\b(?:comput\w*|[tg]?flops?|arithmetic)\b/,
  memory: /\b(?:memory|bandwidth|dram|hbm)\b/,
  bandwidth: /\bbandwidth\b/,
  latency: /\blatenc\w*/,
  bound:
    /\b(?:bound|bounded|bounds|limits|limited|limiting|limit (?!of\b|is\b|in\b|on\b)\w+|constrain\w*|wall)\b/,
  roof: /\bridge\b|\b(?:which|what) (?:roof|side)\b/,
  utilization: /\butili[sz]\w*|\bmfu\b|\bmbu\b/,
  use: /\buses?\b|\busing\b|\busage\b/,
  full: /\bbus(?:y|ier|iest)\b|\b(?:fully|full|well|badly|poorly|maxed)\b|\ball of\b|\bsaturat\w*|\bunder-?(?:used|utili[sz]ed)\b/,
  idle: /\bidl(?:e|es|ing)\b|\bwait\w*|\bstarv\w*|\bstall\w*|\bbubbles?\b|\bgaps?\b|\bholes?\b|\b(?:dead|lost|empty) time\b|\bdo(?:es|ing)? nothing\b|\bpauses?\b/,
  peak: /\bpeaks?\b/,
  batch: /\bbatch\w*|\b(?:more|many|concurrent) (?:sequences|requests|users)\b/,
  prompt: /\bprompts?\b|\binputs?\b|\bcontexts?\b/,
  output:
    /\boutputs?\b|\bgenerations\b|\b(?:more|longer|generated|new|generating) (?:\w+ )?tokens?\b|\bcompletions?\b/,
  growth:
    /\b(?:grow\w*|increas\w*|rais\w*|larger|bigger|longer|higher|more|doubl\w*|twice|shorter|short|smaller|long|scal(?:e|es|ing)|against|across|with)\b/,
  effect:
    /\b(?:compar\w*|affect\w*|effects?|impacts?|influenc\w*|costs?|chang\w*|slow\w*|grow\w*|scal(?:e|es|ing)|depend\w*|var(?:y|ies)|matters?|linear\w*|sensitiv\w*)\b/,
  length: /\b(?:length\w*|longer|long|short|shorter|tokens?|sizes?|doubl\w*|twice)\b/,
  count: /\bhow (?:many|often)\b|\bcounts?\b|\bnumber of\b/,
  step: /\b(?:steps?|layers?|tokens?|iterations?)\b/,
  clock: /\bclocks?\b|\bfrequenc\w*/,
  heat: /\bheat\w*|\btoo hot\b|\bthermal\w*|\btemperatures?\b|\boverheat\w*/,
  lowered:
    /\b(?:reduc\w*|drop\w*|lower\w*|below|slow\w*|cap|caps|capped|limit\w*|too|throttl\w*|go(?:es)? down|went down)\b/,
  health:
    /\bhealth\w*|\bflag(?:s|ged)?\b|\bwarnings?\b|\bdisturb\w*|\bsuspicious\b|\bvalid\b|\b(?:anything|something) (?:wrong|odd|unusual|off)\b|\bproblems?\b.*\b(?:while|during)\b|\bsanity\b/,
  choice: /\bor\b|\bvs\b|\bversus\b|\bthan\b|\bwhether\b|\bdominat\w*/,
  /** A run that was not made, a place to run on, another program: their topics are others. */
  elsewhere: /\b(?:if|would|faster|another|others?|someone|somebody|else)\b|\b(?:runs?|ran|running) on\b/,
} as const;

export type Concept = keyof typeof words;

export function conceptsOf(text: string): ReadonlySet<Concept> {
  const lower = text.toLowerCase();
  return new Set((Object.keys(words) as Concept[]).filter((concept) => words[concept].test(lower)));
}
