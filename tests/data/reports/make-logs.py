"""Makes the small logs of tests/data/reports (valid) and tests/data/bad-logs (one fault each).

Run from the repository root. The figures of tiny.jsonl are worked out by hand in tests/test_report.c; its enclosures are
plausible, not true, so it is a log for readers and reports, never for the checker.
"""
import copy
import hashlib
import json

H=lambda x: 'inf' if x==float('inf') else '-inf' if x==-float('inf') else '0x0p+0' if x==0 else float(x).hex().replace('.0000000000000p','p').replace('.8000000000000p','.8p').replace('.4000000000000p','.4p')
def I(lo,hi=None): return [H(lo),H(lo if hi is None else hi)]
def claim(rule,kind):
    c={"rule":rule,"m":0 if kind=="none" else 2,"m_from":"tree","k":1,"accepts":"yes","edge":[[1,H(2.0)],[2,H(1.0)]]}
    if kind=="none": c.update(certified=None,why="leaf"); return c
    if kind=="vacuous":
        c.update(k=7,klf=I(float('inf')),klr=I(float('inf')),tv=I(float('inf')),covered="yes",certified=dict(klf="vacuous",klr="vacuous",tv="vacuous")); c["edge"]=[[1,H(2.0)],[0,H(0.0)]]; return c
    c.update(level_f=I(.25,.25),tied_f=[1,2],level_r=I(-1.5),tied_r=[1,1],klf=I(.25),klr=I(.5),tv=I(.125),
      margin=dict(gap=I(.3125),klf=I(.125),klr=I(.25),tv=I(.0625)),radius=I(.5),
      covered="no" if kind=="missed" else "yes",
      certified=dict(klf="yes" if kind=="yes" else "inapplicable" if kind=="inap" else "undecided" if kind=="und" else "no",klr="inapplicable" if kind=="inap" else "no",tv="inapplicable" if kind=="inap" else "no"))
    return c
def step(s,t,rnd,token,source,node,depth,child,kinds,regret=0.0,finish=None,text="a",draft=True):
    d={"kind":"step","sequence":s,"t":t,"round":rnd,"token":token,"source":source,"node":node,"depth":depth,"child":child,
      "row":{"why":"not kept"},"draft_row":{"why":"not kept" if draft else "leaf"},"top":[[1,H(2.0)],[2,H(1.0)]],"support":8,"lse":I(2.0),"entropy":I(1.5)}
    if draft: d.update(kl_pq=I(.125),kl_qp=I(.1875),tv=I(.25))
    d["regret"]=I(regret)
    d["claims"]=[claim(r,k) for r,k in zip(["greedy","additive:1/10"],kinds)]
    if finish: d["finish"]=finish
    d["text"]=text
    return d
header={"hallmark":1,"kind":"header","claims":["greedy","additive:1/10"],"m":["tree"],"margin":True,"acceptance":"additive:1/10","temperature":"0","certify_temperature":"1",
 "processors":{"top_k":0,"top_p":"1"},"proposal":"topk","budget":None,"rng":"philox4x32-10","top":2,"nodes":"path",
 "target":{"name":"target","sha256":"11"*32,"vocab":8,"architecture":"Qwen3ForCausalLM"},"draft":{"name":"draft","sha256":"22"*32,"vocab":8,"architecture":"Qwen3ForCausalLM"},
 "tokenizer_sha256":"33"*32,"decoder":{"drafter":"standalone","width":2,"depth":2,"budget":4,"selection":"draft","traversal":"exhaustive"},
 "numerics":{"weights":"BF16","accumulate":"F32","backend":"cpu-fma256","row_source":"verify"},"rows":None,"run":{"version":"0.1.0"}}
def seq(n,cat,mt): return {"kind":"sequence","sequence":n,"id":n+81,"category":cat,"turn":0,"prompt":[1,2,3],"seed":"18446744073709551615","stop":{"eos":[0],"max_tokens":mt,"strings":[]}}
def rnd(s,r,t,parent,token,pool,ea): return {"kind":"round","sequence":s,"round":r,"t":t,"parent":parent,"token":token,"logq":["0x0p+0"]+["-0x1p+0"]*(len(parent)-1),"pool":pool,"expected_accept":I(ea),"charges":[],"run":{"draft_seconds":0.25,"verify_seconds":0.5}}
lines=[header,seq(0,"writing",6),
 step(0,0,None,1,"prefill",0,0,None,["none","none"],draft=False,text="One"),
 rnd(0,0,1,[-1,0,0,1],[1,2,3,4],10,2),
 step(0,1,0,2,"accepted",0,0,1,["yes","yes"],regret=.5,text=" two"),
 step(0,2,0,4,"accepted",1,1,3,["covered","yes"],regret=.25,text=" three"),
 step(0,3,0,1,"continuation",3,2,None,["none","none"],draft=False,text="\n"),
 rnd(0,1,4,[-1,0,0],[1,2,3],20,0),
 step(0,4,1,1,"continuation",0,0,None,["missed","inap"],text=" four"),
 rnd(0,2,5,[-1,0],[1,2],30,1),
 step(0,5,2,2,"accepted",0,0,1,["und","vacuous"],finish="length",text="."),
 seq(1,"coding",9),
 step(1,0,None,0,"prefill",0,0,None,["none","none"],draft=False,finish="eos",text="")]
def v(**k): d=dict(yes=0,no=0,vacuous=0,inapplicable=0,undecided=0); d.update(k); return d
end={"kind":"end","sequences":2,"rounds":3,"steps":7,"nodes":0,"verdicts":[
 {"rule":"greedy","m":"tree","klf":v(yes=1,no=2,undecided=1),"klr":v(no=4),"tv":v(no=4)},
 {"rule":"additive:1/10","m":"tree","klf":v(yes=2,vacuous=1,inapplicable=1),"klr":v(no=2,vacuous=1,inapplicable=1),"tv":v(no=2,vacuous=1,inapplicable=1)}],"undecided":1,"run":{"certify_seconds":1.5,"seconds":2}}
lines.append(end)
def write(path,lines,raw=None):
    chain=''; out=b''
    for d in lines:
        if isinstance(d,bytes): out+=d; continue
        body=json.dumps(d,separators=(',',':'))[:-1]; chain=hashlib.sha256((chain+body).encode()).hexdigest()
        out+=(body+',"chain":"'+chain+'"}\n').encode()
    if raw: out=raw(out)
    open(path,'wb').write(out)
R='tests/data/reports/'; B='tests/data/bad-logs/'
write(R+'tiny.jsonl',lines)
write(R+'cut-line.jsonl',lines,lambda b:b[:-40])
write(R+'cut-round.jsonl',lines[:6])     # after the second accepted token of round 0
write(R+'no-newline.jsonl',lines,lambda b:b[:-1])
copied=copy.deepcopy(lines)              # as the n-gram drafter leaves it: levels, but no draft rows
copied[0]["draft"]=None; copied[0]["decoder"]["drafter"]="ngram"
for d in copied:
    if d["kind"]!="step": continue
    d["draft_row"]={"why":"no draft model"}
    for name in "kl_pq","kl_qp","tv": d.pop(name,None)
    for c in d["claims"]: c.pop("covered",None); c.update(certified=None,why="no draft model")
for d in copied[-1]["verdicts"]: d.update(klf=v(),klr=v(),tv=v())
copied[-1]["undecided"]=0
write(R+'no-rows.jsonl',copied)
evil=copy.deepcopy(lines)
X='</script><script>alert(1)</script><img src=x onerror=alert(2)>" \'`|*&'
evil[0]["target"]["name"]=X; evil[0]["claims"][0]='greedy"><script>alert(3)</script>'
evil[1]["category"]=X; evil[1]["id"]=X
for d in evil:
    if d["kind"]=="step": d["text"]=X+"\u202e\u0001"; d["claims"][0]["rule"]=evil[0]["claims"][0]
write(R+'hostile.jsonl',evil)
def bad(name,f,raw=None):
    l=copy.deepcopy(lines); r=f(l) if f else None
    write(B+name+'.jsonl', r if r is not None else l, raw)
def setp(*path):
    *keys,val=path
    def f(l):
        o=l
        for k in keys[:-1]: o=o[k]
        if val is None and keys[-1]!='certified' : del o[keys[-1]]
        else: o[keys[-1]]=val
    return f
bad('empty',lambda l:[])
bad('not-json',lambda l:[b'hello\n'])
bad('array',lambda l:[b'[1]\n'])
bad('cut-header',lambda l:l[:1],lambda b:b[:50])
bad('version-2',setp(0,"hallmark",2))
bad('not-a-header',setp(0,"kind","sequence"))
bad('no-claims',setp(0,"claims",[]))
bad('claim-number',setp(0,"claims",[1]))
bad('m-zero',setp(0,"m",[0]))
bad('temperature-text',setp(0,"temperature","hot"))
bad('temperature-negative',setp(0,"temperature","-1"))
bad('nodes-some',setp(0,"nodes","some"))
bad('no-target',setp(0,"target",None))
bad('vocab-one',setp(0,"target","vocab",1))
bad('draft-text',setp(0,"draft","none"))
bad('no-decoder-depth',setp(0,"decoder","depth",None))
bad('kind-unknown',setp(1,"kind","turn"))
bad('sequence-skips',setp(11,"sequence",2))
bad('seed-too-large',setp(1,"seed","18446744073709551616"))
bad('prompt-outside',setp(1,"prompt",[1,8]))
bad('round-skips',setp(7,"round",2))
bad('round-t',setp(7,"t",5))
bad('parent-later',setp(3,"parent",[-1,0,2,1]))
bad('tree-ragged',setp(3,"token",[1,2,3]))
bad('logq-number',setp(3,"logq",["0x0p+0",-1.0,"-0x1p+0","-0x1p+0"]))
bad('step-gap',setp(5,"t",3))
bad('step-twice',setp(5,"t",1))
bad('token-outside',setp(4,"token",8))
bad('token-fraction',setp(4,"token",1.5))
bad('source-unknown',setp(4,"source","guess"))
bad('prefill-late',setp(4,"source","prefill"))
bad('child-outside',setp(4,"child",4))
bad('node-outside',setp(4,"node",4))
bad('row-hash-short',setp(4,"row",{"shard":0,"index":0,"sha256":"ab"}))
bad('top-short',setp(4,"top",[[1,"0x1p+1"]]))
bad('top-nan',setp(4,"top",[[1,"nan"],[2,"0x1p+0"]]))
bad('lse-decimal',setp(4,"lse",["2.0","2.0"]))
bad('lse-reversed',setp(4,"lse",["0x1p+1","0x1p+0"]))
bad('lse-too-precise',setp(4,"lse",["0x1.00000000000001p+0","0x1p+1"]))
bad('lse-overflow',setp(4,"lse",["0x1p+0","0x1p+1024"]))
bad('lse-one-end',setp(4,"lse",["0x1p+0"]))
bad('claims-missing-one',lambda l: l[4]["claims"].pop() and None)
bad('claim-other-rule',setp(4,"claims",0,"rule","additive:1/10"))
bad('claim-fixed',setp(4,"claims",0,"m_from","fixed"))
bad('claim-k',setp(4,"claims",0,"k",9))
bad('klf-missing',setp(4,"claims",1,"klf",None))
bad('level-missing',setp(4,"claims",0,"level_f",None))
bad('tied-negative',setp(4,"claims",0,"tied_r",[1,-1]))
bad('verdict-maybe',setp(4,"claims",0,"certified","tv","maybe"))
bad('covered-missing',setp(4,"claims",0,"covered",None))
bad('certified-missing',lambda l: l[4]["claims"][0].pop("certified") and None)
bad('why-missing',setp(2,"claims",0,"why",None))
bad('step-after-finish',lambda l: l.insert(11,step(0,6,2,1,"continuation",1,1,None,["none","none"],draft=False)))
bad('chain-missing',None,lambda b: b.replace(b',"chain":"',b',"chaim":"',2).replace(b',"chaim":"',b',"chain":"',1))
bad('chain-upper',None,lambda b: b[:b.index(b'"chain":"')+9]+b'A'*64+b[b.index(b'"chain":"')+73:])
bad('end-counts',setp(13,"steps",8))
bad('after-the-end',lambda l: l.append({"kind":"sequence"}))
bad('duplicate-key',None,lambda b: b.replace(b'"t":2,',b'"t":2,"t":2,',1))
bad('step-before-round',lambda l: l.pop(3) and None)
bad('step-first',lambda l: l.pop(1) and None)
bad('bad-utf8',None,lambda b: b.replace(b' two',b' tw\xff',1))
