/**
 * Secrets never get into manifests, tables, logs, reports or messages: command lines are redacted by option names, texts by known values
 * and by recognizable tokens.
 */
const redacted = '***';

/** Words in the name of an option or variable with a secret value: --hf-token, OPENAI_API_KEY, db.password. */
const secretName =
  /(?:^|[-_.])(?:tokens?|api[-_]?keys?|apikey|access[-_]?keys?|secret[-_]?keys?|private[-_]?keys?|keys?|secrets?|passwords?|passwd|pwd|passphrase|credentials?|auth|authorization|bearer|cookie)$/i;

/** Similar names with counts, ids or file names of a model as values: --max-new-tokens 8, --tokens 64, --pad-token. */
const harmlessName =
  /(?:^|[-_.])(?:(?:max|min|num|n|new|input|output|prompt|total|batched|context|bos|eos|pad|unk|sep|cls|mask|stop|special|draft|speculative)[-_.](?:\w+[-_.])*tokens?|tokens|keys?)$/i;

/** Names of secret keys, since "key" and "keys" alone mostly name a column. */
const secretKeyName = /(?:api|access|secret|private|auth|account|encryption|signing)[-_]?keys?$/i;

/** Tokens with a recognizable format, whatever their name. */
const literals: RegExp[] = [
  /\bhf_[A-Za-z0-9]{16,}\b/g, // Hugging Face
  // OpenAI, Anthropic, OpenRouter; inside a name such as 20261201-sk-20-checked-fixed only with a long part.
  /(?:(?<![\w-])sk-|\bsk-(?=[\w-]*[A-Za-z0-9]{12}))(?:ant-|proj-|or-)?[A-Za-z0-9_-]{16,}/g,
  /\bgh[pousr]_[A-Za-z0-9]{20,}\b/g, // GitHub
  /\bgithub_pat_[A-Za-z0-9_]{20,}\b/g,
  /\bglpat-[A-Za-z0-9_-]{16,}/g, // GitLab
  /\bnvapi-[A-Za-z0-9_-]{16,}/g, // NVIDIA NGC
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g, // Slack
  /\bAKIA[0-9A-Z]{16}\b/g, // AWS access key id
  /\bAIza[A-Za-z0-9_-]{30,}/g, // Google
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/g, // JSON Web Token; its payload need not be JSON
];

/** `Authorization: Bearer abc` and `X-Api-Key: abc`; the header's name stays. */
const header =
  /\b((?:proxy-)?authorization|x-api-key|api-key|x-auth-token|cookie)(["']?\s*[:=]\s*["']?)((?:bearer|basic|token)\s+)?[^\s"',;]+/gi;
const bearer = /\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}/gi;
/** `&sig=…`, `X-Amz-Signature=…`: a signed URL gives access to its content. */
const signature =
  /([?&;](?:amp;)?(?:sig|signature|x-(?:amz|goog|oss|cos|tos)-(?:signature|credential|security-token))=)[^\s&"'#<>]+/gi;
/** `https://user:password@host` */
const urlCredentials = /\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@'"]+@/gi;
/** `HF_TOKEN=abc`, `--api-key=abc`, `&api_key=abc` inside a longer text. */
const assignedName = /([A-Za-z][\w.-]*)=/g;
const assignedValue = /"[^"]*"|'[^']*'|[^\s&'",;]+/y;

/** Quick check whether one of the patterns above may match. */
const suspicious =
  /[=@]|bearer|authorization|api-key|x-auth-token|cookie|hf_|sk-|gh[pousr]_|github_pat_|glpat-|nvapi-|xox|AKIA|AIza|eyJ/i;

/** Whether the value of an option or variable with this name is secret. */
function isSecretName(name: string): boolean {
  const bare = name.replace(/^-+/, '');
  if (secretKeyName.test(bare)) return true;
  return secretName.test(bare) && !harmlessName.test(bare);
}

/**
 * A command line that can be saved: values of `--token=…`, `--api-key X` and `HF_TOKEN=…`, authorization headers, credentials in URLs and
 * recognizable tokens become `***`. Everything else stays as typed.
 * @param secrets values to hide everywhere, e.g. secretsOfEnvironment(process.env)
 */
export function redactCommand(argv: readonly string[], secrets: readonly string[] = []): string[] {
  let hideNext = false;
  return argv.map((word) => {
    if (hideNext) {
      hideNext = false;
      // `--token --other`: the first option is a flag without a value.
      if (!word.startsWith('--')) return redacted;
    }
    const option = /^(--?[A-Za-z][\w.-]*|[A-Za-z_]\w*)=(.*)$/s.exec(word);
    if (option && isSecretName(option[1]!)) return `${option[1]}=${redacted}`;
    const password = attachedPassword(word);
    if (password !== null) return `-p${redacted}`;
    hideNext = /^--?[A-Za-z][\w.-]*$/.test(word) && isSecretName(word);
    return redactText(word, secrets);
  });
}

/** A password in the form `-pSECRET`, as in mysql, sshpass and 7z. Words (`-parallel`), ports (`-p8080:80`) and numbers are not. */
function attachedPassword(word: string): string | null {
  const value = /^-p([^\s=:/.,-]{6,})$/.exec(word)?.[1];
  return value !== undefined && /[A-Z0-9]/.test(value) && /[A-Za-z]/.test(value) ? value : null;
}

/**
 * Values of at least 8 characters that redactCommand hides by the name of their option: a program may print them again without the option.
 */
export function secretsOfCommand(argv: readonly string[]): string[] {
  const secrets = new Set<string>();
  argv.forEach((word, i) => {
    const next = argv[i + 1];
    const [, name, value] = /^(--?[A-Za-z][\w.-]*|[A-Za-z_]\w*)=(.*)$/s.exec(word) ?? [];
    const match =
      name === undefined
        ? /^--?[A-Za-z][\w.-]*$/.test(word) && isSecretName(word) && !next?.startsWith('--')
          ? next
          : undefined
        : isSecretName(name)
          ? value
          : undefined;
    const password = /\b[a-z][a-z0-9+.-]*:\/\/[^\s/@:]*:([^\s/@]+)@/i.exec(word)?.[1];
    for (const secret of [match, password, attachedPassword(word)])
      if (secret !== undefined && secret !== null && secret.length >= 8 && !secret.startsWith('/'))
        secrets.add(secret);
  });
  return [...secrets].sort((a, b) => b.length - a.length);
}

/** A text without the given values and without recognizable secrets. */
export function redactText(text: string, secrets: readonly string[] = []): string {
  let result = text;
  for (const secret of secrets) if (secret) result = result.replaceAll(secret, redacted);
  // Fast path: there are hundreds of thousands of range and kernel names, almost all without a trace of a secret.
  if (!suspicious.test(result)) return result;
  result = result
    .replace(
      header,
      (_, name: string, between: string, scheme = '') => `${name}${between}${scheme}${redacted}`,
    )
    .replace(bearer, `$1${redacted}`)
    .replace(urlCredentials, `$1${redacted}@`)
    .replace(signature, `$1${redacted}`);
  result = withoutAssignments(result);
  for (const literal of literals) result = result.replace(literal, redacted);
  return result;
}

/** A value may contain assignments (`STORE=AccountName=x;AccountKey=y`), so each `name=` is checked. */
function withoutAssignments(text: string): string {
  let result = '';
  let copied = 0;
  for (const match of text.matchAll(assignedName)) {
    const valueStart = match.index + match[0].length;
    if (match.index < copied || !isSecretName(match[1]!)) continue;
    assignedValue.lastIndex = valueStart;
    const value = assignedValue.exec(text)?.[0];
    if (value === undefined) continue;
    result += text.slice(copied, valueStart) + redacted;
    copied = valueStart + value.length;
  }
  return result + text.slice(copied);
}

/**
 * A JSON value without secrets: every text is redacted, and texts under a secret key are hidden. Special tokens of a vocabulary
 * (`"image_token": "<image>"`) stay.
 */
export function redactJson<T>(value: T, redact: (text: string) => string): T {
  return JSON.parse(
    JSON.stringify(value, (key, item: unknown) => {
      if (typeof item !== 'string') return item;
      const hidden = key !== '' && isSecretName(key) && item.length >= 8 && !item.startsWith('<');
      return hidden ? redacted : redact(item);
    }),
  ) as T;
}

/**
 * Values of secret variables with at least 8 characters (shorter ones would hide ordinary words), longest first, so that one inside another
 * is hidden completely. Paths are not secrets: SSH_AUTH_SOCK, *_KEY_FILE.
 */
export function secretsOfEnvironment(
  env: Readonly<Record<string, string | undefined>> | Iterable<readonly [string, string]>,
): string[] {
  const secrets = new Set<string>();
  const variables =
    Symbol.iterator in env ? (env as Iterable<readonly [string, string]>) : Object.entries(env);
  for (const [name, value] of variables) {
    if (value === undefined || value.length < 8 || value.startsWith('/')) continue;
    if (isSecretName(name) || secretEnvironmentName.test(name)) secrets.add(value);
    const credentials = /^[a-z][a-z0-9+.-]*:\/\/[^\s/@:]*:([^\s/@]{8,})@/i.exec(value)?.[1];
    if (credentials) secrets.add(credentials);
  }
  return [...secrets].sort((a, b) => b.length - a.length);
}

const secretEnvironmentName = /(?:TOKEN|_KEY|APIKEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)/i;
