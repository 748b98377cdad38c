/** Groups of folders that several rows may import, as rows of scripts/import-table.ts name it. */

export const http = ['src/http', 'src/http/syntax'];
export const values = [...http, 'src/model', 'src/model/search'];
export const observed = [...values, 'src/config', 'src/observe', 'src/memory'];
export const stored = [...observed, 'src/store'];
export const rooms = ['src/accounts', 'src/kernel', 'src/resources', 'src/openapi'];
