// What test/perl/ClientTest.pm reads: a word and values on each line.
import { readFileSync } from 'node:fs';

export const print = (what, ...values) => console.log([what, ...values.flat()].join(' '));

export const titles = Array.from({ length: 1000 }, (_, n) => ({ title: `many ${n}` }));
export const hourAgo = new Date(Date.now() - 3600 * 1000);

// A client's IDs, and the times that it read and bound
export const report = (client, { one, many, made, bound, tags }) => {
  print('types', `${client}:`, typeof one, typeof tags[0]);
  print('one', one);
  print('many', many.map((row) => row.id ?? row));
  print('made', new Date(made).getTime());
  print('bound', bound);
  print('tags', tags);
};

export const printVersion = (client, name) =>
  print('version', client, JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version);

// An ID, and the one that a Number makes of it: clients send the shortest digits that name the double.  Both are IDs of
// shard 5 and of the same millisecond.
export const meant = '4020418040280650772';
export const other = '4020418040280651000';
