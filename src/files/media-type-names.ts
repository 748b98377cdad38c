/**
 * Names of media types: the registered one for each of several in use, which types the same content may have, and which one an extension
 * says where content cannot. Types of operating systems, browsers and `file-type` are names of the same formats.
 */

/** The name in use here, then others for it. */
const synonyms: readonly (readonly [registered: string, ...others: string[]])[] = [
  ['application/gzip', 'application/x-gzip'],
  ['application/json', 'text/json', 'application/x-json'],
  ['application/pdf', 'application/x-pdf'],
  ['application/postscript', 'application/eps', 'image/x-eps', 'image/eps', 'application/x-eps'],
  ['application/rtf', 'text/rtf', 'application/x-rtf'],
  ['application/vnd.debian.binary-package', 'application/x-deb', 'application/x-debian-package'],
  [
    'application/vnd.microsoft.portable-executable',
    ...['application/x-msdownload', 'application/x-msdos-program', 'application/x-ms-dos-executable'],
    'application/x-dosexec',
  ],
  ['application/vnd.rar', 'application/x-rar-compressed', 'application/x-rar'],
  ['application/vnd.sqlite3', 'application/x-sqlite3'],
  ['application/x-7z-compressed', 'application/x-7zip'],
  ['application/x-bzip2', 'application/x-bzip'],
  ['application/x-cfb', 'application/x-ole-storage'],
  ['application/xml', 'text/xml'],
  ['application/zip', 'application/x-zip-compressed', 'application/x-zip'],
  ['audio/aac', 'audio/x-aac', 'audio/aacp'],
  ['audio/ac3', 'audio/vnd.dolby.dd-raw'],
  ['audio/aiff', 'audio/x-aiff'],
  ['audio/flac', 'audio/x-flac'],
  ['audio/midi', 'audio/mid', 'audio/x-midi'],
  ['audio/mp4', 'audio/x-m4a', 'audio/m4a'],
  ['audio/mpeg', 'audio/mp3', 'audio/x-mp3', 'audio/mpeg3', 'audio/x-mpeg', 'audio/mpg'],
  ['audio/wav', 'audio/x-wav', 'audio/wave', 'audio/vnd.wave'],
  ['font/otf', 'application/x-font-otf', 'application/x-font-opentype'],
  ['font/ttf', 'application/x-font-ttf', 'application/x-font-truetype', 'font/sfnt'],
  ['font/woff', 'application/font-woff', 'application/x-font-woff'],
  ['font/woff2', 'application/font-woff2'],
  ['image/bmp', 'image/x-bmp', 'image/x-ms-bmp'],
  ['image/jpeg', 'image/jpg', 'image/pjpeg', 'image/x-jpeg'],
  ['image/png', 'image/x-png', 'image/apng', 'image/vnd.mozilla.apng'],
  ['image/tiff', 'image/tif', 'image/x-tiff'],
  ['image/vnd.microsoft.icon', 'image/x-icon', 'image/ico'],
  ['image/webp', 'image/x-webp'],
  ['text/calendar', 'text/x-vcalendar'],
  ['text/csv', 'text/x-csv', 'application/csv', 'application/x-csv', 'text/comma-separated-values'],
  ['text/javascript', 'application/javascript', 'application/x-javascript', 'text/x-javascript'],
  ['text/markdown', 'text/x-markdown'],
  ['text/vcard', 'text/x-vcard', 'text/directory'],
  ['video/matroska', 'video/x-matroska'],
  ['video/quicktime', 'video/mov'],
  ['video/vnd.avi', 'video/x-msvideo', 'video/avi', 'video/msvideo'],
  ['video/x-flv', 'video/flv'],
];

const registered: ReadonlyMap<string, string> = new Map(
  synonyms.flatMap(([name, ...others]) => others.map((other) => [other, name] as const)),
);

/** The name in use here for a type, in lower case and without parameters. */
export function registeredType(type: string): string {
  const [essence = ''] = type.split(';', 1);
  const name = essence.trim().toLowerCase();
  return registered.get(name) ?? name;
}

/** Types of the same octets, between which only a reader of all of them can decide, or which say what they are used for. */
const kinships: readonly (readonly [kin: string, form: RegExp])[] = [
  ['iso media', /^(?:video|audio)\/(?:mp4|quicktime|x-m4[avp]|3gpp2?)$|^application\/mp4$/],
  ['matroska', /^(?:video|audio)\/(?:x-)?(?:webm|matroska)$/],
  ['ogg', /^(?:video|audio|application)\/ogg$|^audio\/(?:opus|vorbis|speex)$/],
  ['asf', /^(?:video|audio|application)\/(?:x-ms-(?:asf|w[am].?)|vnd\.ms-asf)$/],
  ['mpeg', /^video\/(?:mpeg|mp[12][ps]|mp[12]v|x-mpeg)$/],
  ['transport stream', /^video\/(?:mp2t|vnd\.dlna\.mpeg-tts)$/],
  ['heif', /^image\/hei[cf](?:-sequence)?$/],
  ['tiff', /^image\/(?:tiff|x-(?:adobe|canon|epson|kodak|nikon|olympus|panasonic|pentax|samsung|sony)-.+)$/],
  ['jpeg 2000', /^(?:image\/(?:jp2|jpx|jpm|mj2)|video\/mj2)$/],
  ['word', /^application\/vnd\.(?:openxmlformats-officedocument\.wordprocessingml|ms-word)\./],
  ['excel', /^application\/vnd\.(?:openxmlformats-officedocument\.spreadsheetml|ms-excel)\./],
  ['powerpoint', /^application\/vnd\.(?:openxmlformats-officedocument\.presentationml|ms-powerpoint)\./],
  ['opendocument text', /^application\/vnd\.oasis\.opendocument\.text/],
  ['opendocument spreadsheet', /^application\/vnd\.oasis\.opendocument\.spreadsheet/],
  ['opendocument presentation', /^application\/vnd\.oasis\.opendocument\.presentation/],
  ['opendocument graphics', /^application\/vnd\.oasis\.opendocument\.graphics/],
];

export function areKin(one: string, other: string): boolean {
  return kinships.some(([, form]) => form.test(one) && form.test(other));
}

/** Formats that other formats are made of: what is found, and the form of types that may be stated although they are known by content. */
const containers: ReadonlyMap<string, RegExp> = new Map([
  [
    'application/zip',
    /^application\/(?:vnd\.(?:oasis\.|openxmlformats-|ms-.+\.macroenabled|android\.package|apple\.|visio)|java-archive|x-xpinstall|epub\+zip)|^model\/3mf$/,
  ],
  ['application/x-cfb', /^application\/vnd\.(?:ms-outlook|visio)$/],
]);
const plain: ReadonlySet<string> = new Set([
  'application/gzip',
  'application/vnd.sqlite3',
  'application/x-7z-compressed',
  'application/x-bzip2',
  'application/x-tar',
  'application/x-xz',
  'application/zstd',
]);
const contained = /^(?:application|model|chemical)\//;

/** True if content of the found type, a container, may have the stated one. @param known types that content must have by its octets */
export function mayContain(found: string, stated: string, known: ReadonlySet<string>): boolean {
  // Archives of Java have what other packages have too, such as those of Android.
  const container = found === 'application/java-archive' ? 'application/zip' : found;
  const form = containers.get(container);
  if (form === undefined && !plain.has(container)) return isZip(found) && stated === 'application/zip';
  if (stated === container) return true;
  return contained.test(stated) && (!known.has(stated) || (form?.test(stated) ?? false));
}

function isZip(type: string): boolean {
  return containers.get('application/zip')?.test(type) ?? false;
}

const textual: ReadonlySet<string> = new Set([
  'application/json',
  'application/xml',
  'application/xhtml+xml',
]);
const texts = /^(?:text|application|model|message|chemical)\/|^audio\/(?:x-)?mpegurl$/;

/** True if any text may have the type. @param known types that content must have by its octets */
export function mayBeText(type: string, known: ReadonlySet<string>): boolean {
  return textual.has(type) || type.startsWith('text/') || (texts.test(type) && !known.has(type));
}

const textAlone = /^text\/|[/+](?:json|xml)$/;

/** True if content with octets that no text has cannot have the type. */
export function mustBeText(type: string): boolean {
  return textAlone.test(type);
}

/** What the extension of a name says of content of a kind: `text` for any text, otherwise of the type that was found. */
const extensions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  text: {
    css: 'text/css',
    csv: 'text/csv',
    eml: 'message/rfc822',
    geojson: 'application/geo+json',
    gltf: 'model/gltf+json',
    gpx: 'application/gpx+xml',
    htm: 'text/html',
    html: 'text/html',
    ics: 'text/calendar',
    js: 'text/javascript',
    json: 'application/json',
    kml: 'application/vnd.google-earth.kml+xml',
    log: 'text/plain',
    m3u8: 'application/vnd.apple.mpegurl',
    md: 'text/markdown',
    mjs: 'text/javascript',
    obj: 'model/obj',
    sql: 'application/sql',
    srt: 'application/x-subrip',
    stl: 'model/stl',
    toml: 'application/toml',
    tsv: 'text/tab-separated-values',
    txt: 'text/plain',
    vcf: 'text/vcard',
    vtt: 'text/vtt',
    webmanifest: 'application/manifest+json',
    xml: 'application/xml',
    yaml: 'application/yaml',
    yml: 'application/yaml',
  },
  'application/zip': {
    '3mf': 'model/3mf',
    apk: 'application/vnd.android.package-archive',
    docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    epub: 'application/epub+zip',
    jar: 'application/java-archive',
    kmz: 'application/vnd.google-earth.kmz',
    odg: 'application/vnd.oasis.opendocument.graphics',
    odp: 'application/vnd.oasis.opendocument.presentation',
    ods: 'application/vnd.oasis.opendocument.spreadsheet',
    odt: 'application/vnd.oasis.opendocument.text',
    pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
    xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  },
  'application/java-archive': { apk: 'application/vnd.android.package-archive' },
  'application/x-cfb': {
    doc: 'application/msword',
    mpp: 'application/vnd.ms-project',
    msg: 'application/vnd.ms-outlook',
    ppt: 'application/vnd.ms-powerpoint',
    vsd: 'application/vnd.visio',
    xls: 'application/vnd.ms-excel',
  },
  'application/vnd.sqlite3': { gpkg: 'application/geopackage+sqlite3' },
  'image/tiff': {
    arw: 'image/x-sony-arw',
    cr2: 'image/x-canon-cr2',
    dng: 'image/x-adobe-dng',
    nef: 'image/x-nikon-nef',
  },
  'video/mp4': { m4a: 'audio/mp4', m4b: 'audio/mp4' },
  'video/webm': { weba: 'audio/webm' },
};

/** The type that the extension says, for content that may have it; undefined if it says none. @param kind `text`, or the type that was found */
export function typeByExtension(kind: string, extension: string): string | undefined {
  const types = extensions[kind];
  return types !== undefined && Object.hasOwn(types, extension) ? types[extension] : undefined;
}
