/** Who may see and do what belongs to everybody: administrators, and with a credential nobody else (403 rather than 401). */
import { type Permission, permission } from '../model/access.ts';
import type { Principal } from '../model/principal.ts';

export function administratorsOnly(principal: Principal): Permission {
  return permission('administrator', 'read', principal);
}
