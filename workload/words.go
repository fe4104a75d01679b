package workload

import "strings"

// commonWords are short English words. With a leading space each word is one token in
// common vocabularies. A text of n words therefore has almost n tokens, and fitting an
// exact number is quick.
var commonWords = strings.Fields(`
able about above across act add after again against age ago air all almost alone along already also always among
amount an and animal another answer any appear area arm army art as ask at away baby back bad ball bank base be bear
beat beauty bed been before begin behind being believe below best better between big bird black blood blue board boat
body book born both bottom box boy branch bread break bridge bright bring broken brother brown build building burn
business but buy by call came camp can capital captain car care carry case cat catch cause cell center century certain
chair chance change character chart check child children choose church circle city class clean clear climb close cloud
coast cold color come common company compare complete condition consider contain continue control cook cool copper
copy corn corner correct cost cotton could count country course cover cross crowd cry current cut dance danger dark
day dead deal dear death decide deep degree design desert develop did die difference different direct discover
distance divide do doctor does dog dollar door double down draw dream dress drink drive drop dry during each early
earth ease east eat edge effect egg eight either electric element else end enemy energy engine enough enter entire
equal even evening event ever every exact example except excite exercise expect experience experiment explain eye face
fact fair fall family famous far farm fast father favor fear feed feel feet fell felt few field fight figure fill final
find fine finger finish fire first fish fit five flat floor flow flower fly follow food foot for force foreign forest
form forward found four fraction free fresh friend from front fruit full fun game garden gas gather gave general
gentle get girl give glad glass go gold gone good got govern grand grass gray great green grew ground group grow guess
guide gun had hair half hand happen happy hard has hat have he head hear heart heat heavy held help her here high hill
him his history hit hold hole home hope horse hot hour house how huge human hundred hunt hurry ice idea if imagine in
inch include increase indicate industry insect instrument interest invent iron is island it job join joy jump just
keep kept key kill kind king knew know lady lake land language large last late laugh law lay lead learn least leave
led left leg length less let letter level lie life lift light like line liquid list listen little live locate log lone
long look lost lot loud love low machine made magnet main major make man many map mark market mass master match
material matter may me mean measure meat meet men metal method middle might mile milk million mind mine minute miss
mix modern moment money month moon more morning most mother motion mount mountain mouth move much music must my name
nation natural nature near necessary neck need neighbor never new next night nine no noise noon nor north nose note
nothing notice noun now number object observe occur ocean of off offer office often oil old on once one only open
operate opposite or order organ original other our out over own oxygen page paint pair paper paragraph parent part
particular party pass past path pattern pay people perhaps period person phrase pick picture piece place plain plan
plane planet plant play please point poor populate port position possible post pound power practice prepare present
press pretty print probable problem process produce product proper property protect prove provide pull push put
quart question quick quiet quite race radio rail rain raise ran range rather reach read ready real reason receive
record red region remember repeat reply represent require rest result rich ride right ring rise river road rock roll
room root rope rose round row rub rule run safe said sail salt same sand sat save saw say scale school science sea
search season seat second section see seed seem select self sell send sense sent sentence separate serve set settle
seven several shape share sharp she sheet shell shine ship shoe shop shore short should shoulder shout show side sight
sign silent silver similar simple since sing single sister sit six size skill skin sky sleep slow small smell smile
snow so soft soil soldier solution solve some son song soon sound south space speak special speech speed spell spend
spoke spot spread spring square stand star start state station stay steam steel step stick still stone stood stop
store story straight strange stream street stretch string strong student study subject substance success such sudden
sugar suggest suit summer sun supply support sure surface surprise swim symbol system table tail take talk tall teach
team tell temperature ten term test than thank that the their them then there these they thick thin thing think third
this those though thought thousand three through throw thus tie time tiny to together told tone too took tool top
total touch toward town track trade train travel tree triangle trip trouble truck true try tube turn twenty two type
under unit until up us use usual valley value vary very view village visit voice wait walk wall want war warm was wash
watch water wave way we wear weather week weight well went were west what wheel when where whether which while white
who whole whose why wide wife wild will win wind window wing winter wire wish with woman women wonder wood word work
world would write written wrong yard year yellow yes yet you young your`)
