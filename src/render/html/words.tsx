import type { FC } from 'hono/jsx';
import { figureParts, keepUnits, nbsp } from '../../vocabulary/format.js';
import { FigureText, Missing } from './parts.js';
import type { Text, Value } from '../../views/block.js';
import { parts, valueText } from '../value.js';
import { GainDrawing } from './gain.js';

export const Words: FC<{ text: Text }> = ({ text }) => (
  <>
    {parts(text).map((part) =>
      typeof part === 'string' ? <Breakable text={keepUnits(indented(part))} /> : <ValueText value={part} />,
    )}
  </>
);

/** Words of at least this length may break inside. */
const longWord = /\S{17,}/g;

/** Text in which long names may break after their separators: `<wbr>` between the parts of `metrics.output_token_count`. */
export const Breakable: FC<{ text: string }> = ({ text }) => {
  const marked = text.replaceAll(longWord, (word) => word.replaceAll(/[_./,:=]+(?=[^_./,:=])/g, '$&\0'));
  return (
    <>
      {marked.split('\0').map((piece, index) => (
        <>
          {index > 0 && <wbr />}
          {piece}
        </>
      ))}
    </>
  );
};

/** HTML drops leading spaces, which indent the parts of a row above. */
const indented = (text: string): string => text.replace(/^ {2,}/, (spaces) => nbsp.repeat(2 * spaces.length));

const ValueText: FC<{ value: Value }> = ({ value }) => {
  if ('figure' in value) {
    const { reason } = figureParts(value.figure);
    if (reason !== null || value.spread === true)
      return <FigureText figure={value.figure} utilization={value.utilization ?? false} />;
    return <>{valueText(value)}</>;
  }
  if ('missing' in value) return <Missing reason={value.missing} />;
  if ('code' in value)
    return (
      <code>
        <Breakable text={value.code} />
      </code>
    );
  if ('link' in value)
    return (
      <a href={value.link} rel="noreferrer">
        {value.text}
      </a>
    );
  if ('gain' in value) return <GainDrawing {...value} />;
  if (!('text' in value)) return <>{valueText(value)}</>;
  const { text, tone, hint } = value;
  if (tone === 'strong')
    return (
      <strong>
        <Breakable text={text} />
      </strong>
    );
  const className = tone === 'fault' ? 'fault' : tone === 'dim' ? 'missing' : '';
  return (
    <span {...(className ? { class: className } : {})} {...(hint ? { title: hint } : {})}>
      <Breakable text={text} />
    </span>
  );
};
