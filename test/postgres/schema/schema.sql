-- migrations 1 system-tables, 2 raises, 3 fold
CREATE TABLE comity.categories (
  id text COLLATE "C" NOT NULL,
  rev bigint NOT NULL,
  owner text COLLATE "C",
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  deleted_at bigint,
  doc text NOT NULL,
  CONSTRAINT "categories.primary" PRIMARY KEY (id)
);
CREATE TABLE comity.comity_counters (
  n integer NOT NULL,
  name text COLLATE "C" NOT NULL,
  rev bigint NOT NULL,
  CONSTRAINT comity_counters_name_key UNIQUE (name),
  CONSTRAINT comity_counters_pkey PRIMARY KEY (n)
) WITH (fillfactor=10, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_cost_delay=0);
CREATE TABLE comity.comity_indexes (
  name text COLLATE "C" NOT NULL,
  table_name text COLLATE "C" NOT NULL,
  fields json NOT NULL,
  definition text NOT NULL,
  CONSTRAINT comity_indexes_pkey PRIMARY KEY (name)
);
CREATE TABLE comity.comity_migrations (
  number integer NOT NULL,
  name text COLLATE "C" NOT NULL,
  made_at bigint NOT NULL,
  program text NOT NULL,
  CONSTRAINT comity_migrations_pkey PRIMARY KEY (number)
);
CREATE TABLE comity.comity_processes (
  process text COLLATE "C" NOT NULL,
  seen_at bigint NOT NULL,
  facts text NOT NULL,
  CONSTRAINT comity_processes_pkey PRIMARY KEY (process)
);
CREATE TABLE comity.comity_raises (
  before bigint NOT NULL,
  after bigint NOT NULL,
  made_at bigint NOT NULL,
  server text COLLATE "C" NOT NULL,
  CONSTRAINT comity_raises_pkey PRIMARY KEY (before)
);
CREATE UNLOGGED TABLE comity.comity_tallies (
  key text COLLATE "C" NOT NULL,
  total bigint NOT NULL,
  expires_at bigint NOT NULL,
  CONSTRAINT comity_tallies_pkey PRIMARY KEY (key)
) WITH (fillfactor=50);
CREATE TABLE comity.comity_writers (
  writer text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL,
  batch bigint NOT NULL,
  first_rev bigint NOT NULL,
  last_rev bigint NOT NULL,
  seen_at bigint NOT NULL,
  CONSTRAINT comity_writers_pkey PRIMARY KEY (writer)
) WITH (fillfactor=10, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_cost_delay=0);
CREATE TABLE comity.events (
  id text COLLATE "C" NOT NULL,
  former text,
  doc text NOT NULL,
  rev bigint NOT NULL,
  owner text COLLATE "C",
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  deleted_at bigint,
  type text COLLATE "C" NOT NULL,
  collection text COLLATE "C" NOT NULL,
  document text COLLATE "C",
  CONSTRAINT "events.primary" PRIMARY KEY (id)
);
CREATE TABLE comity.things (
  id text COLLATE "C" NOT NULL,
  rev bigint NOT NULL,
  owner text COLLATE "C",
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  deleted_at bigint,
  doc text NOT NULL,
  search text COLLATE "C",
  CONSTRAINT "things.primary" PRIMARY KEY (id)
);
CREATE INDEX "categories.index[""id""]" ON comity.categories USING btree (id) WHERE (deleted_at IS NULL);
CREATE INDEX "categories.index[""parentId""]" ON comity.categories USING btree (((jsonb_path_query_first((doc)::jsonb, 'strict $."parentId"?(@.type() == "string")'::jsonpath, '{}'::jsonb, true) #>> '{}'::text[])) COLLATE "C" NULLS FIRST, id) WHERE (deleted_at IS NULL);
CREATE UNIQUE INDEX "categories.unique[""name""]" ON comity.categories USING btree (((jsonb_path_query_first((doc)::jsonb, 'strict $."name"?(@.type() == "string")'::jsonpath, '{}'::jsonb, true) #>> '{}'::text[])) COLLATE "C") WHERE (deleted_at IS NULL);
CREATE INDEX "events.index[""collection"",""document"",""rev""]" ON comity.events USING btree (collection, document NULLS FIRST, rev, id) WHERE (deleted_at IS NULL);
CREATE INDEX "events.index[""rev""]" ON comity.events USING btree (rev, id) WHERE (deleted_at IS NULL);
CREATE INDEX "things.index[""categoryId"",""price""]" ON comity.things USING btree (((jsonb_path_query_first((doc)::jsonb, 'strict $."categoryId"?(@.type() == "string")'::jsonpath, '{}'::jsonb, true) #>> '{}'::text[])) COLLATE "C" NULLS FIRST, ((jsonb_path_query_first((doc)::jsonb, 'strict $."price"?(@.type() == "number")'::jsonpath, '{}'::jsonb, true))::double precision) NULLS FIRST, id) WHERE (deleted_at IS NULL);
CREATE INDEX "things.index[""createdAt""]" ON comity.things USING btree (created_at, id) WHERE (deleted_at IS NULL);
CREATE INDEX "things.index[""live""]" ON comity.things USING btree ((((jsonb_path_query_first((doc)::jsonb, 'strict $."live"?(@.type() == "boolean")'::jsonpath, '{}'::jsonb, true))::boolean)::integer) NULLS FIRST, id) WHERE (deleted_at IS NULL);
CREATE INDEX "things.index[""name"",""stock""]" ON comity.things USING btree (((jsonb_path_query_first((doc)::jsonb, 'strict $."name"?(@.type() == "string")'::jsonpath, '{}'::jsonb, true) #>> '{}'::text[])) COLLATE "C" NULLS FIRST, ((jsonb_path_query_first((doc)::jsonb, 'strict $."stock"?(@.type() == "number")'::jsonpath, '{}'::jsonb, true))::double precision) NULLS FIRST, id) WHERE (deleted_at IS NULL);
CREATE INDEX "things.index[""price""]" ON comity.things USING btree (((jsonb_path_query_first((doc)::jsonb, 'strict $."price"?(@.type() == "number")'::jsonpath, '{}'::jsonb, true))::double precision) NULLS FIRST, id) WHERE (deleted_at IS NULL);
CREATE UNIQUE INDEX "things.unique[""sku""]" ON comity.things USING btree (((jsonb_path_query_first((doc)::jsonb, 'strict $."sku"?(@.type() == "string")'::jsonpath, '{}'::jsonb, true) #>> '{}'::text[])) COLLATE "C") WHERE (deleted_at IS NULL);
CREATE OR REPLACE FUNCTION comity.comity_costly(value text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE COST 10000
AS $function$
BEGIN
  RETURN value;
END
$function$;
CREATE OR REPLACE FUNCTION comity.comity_expect(actual bigint, wanted bigint, what text)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF actual IS DISTINCT FROM wanted THEN
    RAISE EXCEPTION USING ERRCODE = 'CM001', MESSAGE = what;
  END IF;
  RETURN actual;
END
$function$;
CREATE OR REPLACE FUNCTION comity.comity_fold(value text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
BEGIN
  value := lower(value COLLATE "C");
  IF octet_length(value) = length(value) THEN RETURN value; END IF;
  RETURN translate(value, 'ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞĀĂĄĆĈĊČĎĐĒĔĖĘĚĜĞĠĢĤĦĨĪĬĮĲĴĶĹĻĽĿŁŃŅŇŊŌŎŐŒŔŖŘŚŜŞŠŢŤŦŨŪŬŮŰŲŴŶŸŹŻŽƁƂƄƆƇƉƊƋƎƏƐƑƓƔƖƗƘƜƝƟƠƢƤƦƧƩƬƮƯƱƲƳƵƷƸƼǄǅǇǈǊǋǍǏǑǓǕǗǙǛǞǠǢǤǦǨǪǬǮǱǲǴǶǷǸǺǼǾȀȂȄȆȈȊȌȎȐȒȔȖȘȚȜȞȠȢȤȦȨȪȬȮȰȲȻȽɁɃɄɅɆɈɊɌɎͰͲͶͿΆΈΉΊΌΎΏΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩΪΫϏϘϚϜϞϠϢϤϦϨϪϬϮϴϷϹϺϽϾϿЀЁЂЃЄЅІЇЈЉЊЋЌЍЎЏАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯѠѢѤѦѨѪѬѮѰѲѴѶѸѺѼѾҀҊҌҎҐҒҔҖҘҚҜҞҠҢҤҦҨҪҬҮҰҲҴҶҸҺҼҾӀӁӃӅӇӉӋӍӐӒӔӖӘӚӜӞӠӢӤӦӨӪӬӮӰӲӴӶӸӺӼӾԀԂԄԆԈԊԌԎԐԒԔԖԘԚԜԞԠԢԤԦԨԪԬԮԱԲԳԴԵԶԷԸԹԺԻԼԽԾԿՀՁՂՃՄՅՆՇՈՉՊՋՌՍՎՏՐՑՒՓՔՕՖḀḂḄḆḈḊḌḎḐḒḔḖḘḚḜḞḠḢḤḦḨḪḬḮḰḲḴḶḸḺḼḾṀṂṄṆṈṊṌṎṐṒṔṖṘṚṜṞṠṢṤṦṨṪṬṮṰṲṴṶṸṺṼṾẀẂẄẆẈẊẌẎẐẒẔẞẠẢẤẦẨẪẬẮẰẲẴẶẸẺẼẾỀỂỄỆỈỊỌỎỐỒỔỖỘỚỜỞỠỢỤỦỨỪỬỮỰỲỴỶỸỺỼỾἈἉἊἋἌἍἎἏἘἙἚἛἜἝἨἩἪἫἬἭἮἯἸἹἺἻἼἽἾἿὈὉὊὋὌὍὙὛὝὟὨὩὪὫὬὭὮὯᾈᾉᾊᾋᾌᾍᾎᾏᾘᾙᾚᾛᾜᾝᾞᾟᾨᾩᾪᾫᾬᾭᾮᾯᾸᾹᾺΆᾼῈΈῊΉῌῘῙῚΊῨῩῪΎῬῸΌῺΏῼＡＢＣＤＥＦＧＨＩＪＫＬＭＮＯＰＱＲＳＴＵＶＷＸＹＺςſ', 'àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþāăąćĉċčďđēĕėęěĝğġģĥħĩīĭįĳĵķĺļľŀłńņňŋōŏőœŕŗřśŝşšţťŧũūŭůűųŵŷÿźżžɓƃƅɔƈɖɗƌǝəɛƒɠɣɩɨƙɯɲɵơƣƥʀƨʃƭʈưʊʋƴƶʒƹƽǆǆǉǉǌǌǎǐǒǔǖǘǚǜǟǡǣǥǧǩǫǭǯǳǳǵƕƿǹǻǽǿȁȃȅȇȉȋȍȏȑȓȕȗșțȝȟƞȣȥȧȩȫȭȯȱȳȼƚɂƀʉʌɇɉɋɍɏͱͳͷϳάέήίόύώαβγδεζηθικλμνξοπρστυφχψωϊϋϗϙϛϝϟϡϣϥϧϩϫϭϯθϸϲϻͻͼͽѐёђѓєѕіїјљњћќѝўџабвгдежзийклмнопрстуфхцчшщъыьэюяѡѣѥѧѩѫѭѯѱѳѵѷѹѻѽѿҁҋҍҏґғҕҗҙқҝҟҡңҥҧҩҫҭүұҳҵҷҹһҽҿӏӂӄӆӈӊӌӎӑӓӕӗәӛӝӟӡӣӥӧөӫӭӯӱӳӵӷӹӻӽӿԁԃԅԇԉԋԍԏԑԓԕԗԙԛԝԟԡԣԥԧԩԫԭԯաբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆḁḃḅḇḉḋḍḏḑḓḕḗḙḛḝḟḡḣḥḧḩḫḭḯḱḳḵḷḹḻḽḿṁṃṅṇṉṋṍṏṑṓṕṗṙṛṝṟṡṣṥṧṩṫṭṯṱṳṵṷṹṻṽṿẁẃẅẇẉẋẍẏẑẓẕßạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹỻỽỿἀἁἂἃἄἅἆἇἐἑἒἓἔἕἠἡἢἣἤἥἦἧἰἱἲἳἴἵἶἷὀὁὂὃὄὅὑὓὕὗὠὡὢὣὤὥὦὧᾀᾁᾂᾃᾄᾅᾆᾇᾐᾑᾒᾓᾔᾕᾖᾗᾠᾡᾢᾣᾤᾥᾦᾧᾰᾱὰάᾳὲέὴήῃῐῑὶίῠῡὺύῥὸόὼώῳａｂｃｄｅｆｇｈｉｊｋｌｍｎｏｐｑｒｓｔｕｖｗｘｙｚσs');
END
$function$;
