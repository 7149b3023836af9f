import { expect, test } from 'vitest';
import { priceOf } from './answer-token-cost.js';

test.each([
  ['what do a million tokens cost at $2.50 per GPU hour?', '$2.50'],
  ['cost per 1M tokens with a card for 3 EUR/h', '3 EUR'],
  ['we pay 2 dollars an hour: what is a token?', '2 dollars'],
  ['at €4/GPU-hour', '€4'],
  ['at 2.50 USD per hour', '2.50 USD'],
  ['H200 at 3.9$/hr, price of 1M output tokens', '3.9 $'],
])('the price in "%s" is %s', (question, typed) => {
  const price = priceOf(question)!;
  expect(price.inCurrency(price.amount)).toBe(typed);
});

test.each([
  'what does a token cost?',
  'cost at .50 per hour',
  'how many tokens per hour?',
  'what do 1000 tokens cost per second?',
])('there is no price in "%s"', (question) => expect(priceOf(question)).toBeNull());
