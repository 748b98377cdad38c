/** Column values in messages between threads and from statements that return arrays. */
import type { SQLOutputValue } from 'node:sqlite';

export type Cells = readonly SQLOutputValue[];
