/** Text as HTML text or as a quoted attribute value. */

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const special = /[&<>"']/g;

export function escapeHtml(text: string): string {
  return text.replace(special, (character) => entities[character] ?? '');
}
