import type { Architecture, GroupedAttention, Layer } from './architecture.js';
import { configFields, type ConfigFields } from './config-fields.js';
import type { EncoderFields, Family, FieldNames } from './family.js';
import { readAttention } from './read-attention.js';
import { readMlp } from './read-mlp.js';
import { names } from './read-names.js';

type Values = Record<string, unknown>;

/** A config with the decoder's fields under the names of decoder-only models. */
export function decoderValues(values: Values, { encoder }: Family): Values {
  return encoder ? renamed(values, encoder.decoderNames) : values;
}

function renamed(values: Values, fieldNames: FieldNames): Values {
  const found = Object.entries(fieldNames).flatMap(([name, fields]) => {
    const field = fields.find((one) => values[one] !== undefined);
    return field === undefined ? [] : [[name, values[field]] as const];
  });
  return { ...values, ...Object.fromEntries(found) };
}

/** Adds the encoder's layers before the decoder's, and to these attention to its output. */
export function addEncoder<A extends Pick<Architecture, 'hiddenSize' | 'layers'>>(
  architecture: A,
  values: Values,
  family: Family,
  encoder: EncoderFields,
): A & Pick<Architecture, 'encoder' | 'embeddingNorm'> {
  const { hiddenSize } = architecture;
  const fields = configFields(renamed(values, encoder.encoderNames));
  const layerCount = fields.integer(names.layers, { max: 10_000 });
  const attentionOf = readAttention(fields, family, hiddenSize, layerCount);
  const attentionIn = (attention: Layer['attention'], isFirst: boolean): GroupedAttention => {
    if (attention.kind !== 'grouped') throw new Error(`${family.name}: an encoder has grouped attention`);
    const { positionBias, keyBias } = encoder;
    const hasBias = positionBias === 'every' || (positionBias === 'first' && isFirst);
    return {
      ...attention,
      ...(keyBias === undefined ? {} : { keyBias }),
      ...(hasBias ? { positionBias: biasElements(fields, attention) } : {}),
    };
  };
  const encoderLayers = Array.from({ length: layerCount }, (_, index): Layer => ({
    index,
    isEncoder: true,
    attention: { ...attentionIn(attentionOf(index), index === 0), keys: 'all' },
    mlp: readMlp(fields, family, hiddenSize, layerCount, index),
    extra: [],
  }));
  const decoderLayers = architecture.layers.map((layer): Layer => {
    const attention = attentionIn(layer.attention, layer.index === 0);
    const { positionBias: _, ...cross } = attention;
    return { ...layer, index: layerCount + layer.index, attention, cross: { ...cross, keys: 'source' } };
  });
  const offset = family.positions.kind === 'learned' ? family.positions.offset : 0;
  return {
    ...architecture,
    embeddingNorm: encoder.embeddingNorm,
    encoder: {
      positionRows: encoder.positions ? fields.integer(names.positions) + offset : 0,
      convolutions: encoder.convolutions ? { melBins: fields.integer(['num_mel_bins']), kernel: 3 } : null,
    },
    layers: [...encoderLayers, ...decoderLayers],
  };
}

const biasElements = (fields: ConfigFields, { headCount }: GroupedAttention): number =>
  headCount * fields.integer(['relative_attention_num_buckets']);
