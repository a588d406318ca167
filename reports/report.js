// The page is complete without this script; it adds the card with a token's details, the choice of claim, and copying.
(function () {
  'use strict';
  var root = document.documentElement, card = document.getElementById('card');
  var data = JSON.parse(document.getElementById('data').textContent);
  var tokens = Array.prototype.slice.call(document.querySelectorAll('.text .k'));
  var claimPick = document.getElementById('claim'), proofPick = document.getElementById('proof');
  var onlyPick = document.getElementById('only'), roundPick = document.getElementById('round');
  var STATUS = ['certified', 'covered, not certified', 'not covered', 'no draft row', 'vacuous: coverage cannot fail',
    'inapplicable: the children are not the draft\u2019s first m', 'undecided'];
  var VERDICT = { n: 'no', y: 'yes', v: 'vacuous', i: 'inapplicable', u: 'undecided' };
  var SOURCE = ['from the prompt\u2019s last row', 'accepted draft token', 'emitted by the target'];
  var pinned = null;
  root.classList.add('js');

  function claim() { return claimPick ? +claimPick.value : 0; }
  function only() { return onlyPick ? +onlyPick.value : -1; }
  function proof() { return proofPick ? +proofPick.value : -1; }

  // The status of a token under the chosen claim, from one divergence or from any.
  function status(row) {
    var c = row[11 + claim()], which = proof(), v = which < 0 ? c[4] : c[4].charAt(which);
    if (!v) return 3;
    if (v.indexOf('y') >= 0) return 0;
    if (v.indexOf('u') >= 0 || c[3] === 2) return 6;
    if (v.indexOf('i') >= 0) return 5;
    if (v.indexOf('v') >= 0) return 4;
    return c[3] === 1 ? 1 : 2;
  }

  function recolour() {
    var counts = [0, 0, 0, 0, 0, 0, 0];
    tokens.forEach(function (token, i) {
      var s = status(data.rows[i]);
      counts[s]++;
      token.className = 'k s' + s + (only() >= 0 && only() !== s ? ' dim' : '');
    });
    document.querySelectorAll('#legend [data-s]').forEach(function (item) {
      var n = counts[+item.dataset.s];
      item.hidden = n === 0;
      item.querySelector('b').textContent = String(n).replace(/\B(?=(\d{3})+$)/g, ',');
    });
    showClaim();
    hide();
  }

  function showClaim() {
    document.querySelectorAll('[data-claim]').forEach(function (part) { part.hidden = +part.dataset.claim !== claim(); });
  }

  // The command that shows the step of a token: which sequence of which log it belongs to.
  function inspect(i) {
    for (var k = 0, at = 0; k < data.runs.length; at += data.runs[k][0], k++)
      if (i < at + data.runs[k][0]) break;
    var log = data.logs[data.runs[k][1]];
    if (!/^[\w.\/+:=,@%-]+$/.test(log)) log = "'" + log.replace(/'/g, "'\\''") + "'";
    return 'hallmark inspect ' + log + ' --step ' + data.runs[k][2] + ':' + data.rows[i][0];
  }

  function element(name, text, className) {
    var e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    if (className) e.className = className;
    return e;
  }

  function row(table, cells) {
    var tr = element('tr');
    cells.forEach(function (text, i) { tr.appendChild(element(i ? 'td' : 'th', text)); });
    table.appendChild(tr);
  }

  function fill(i) {
    var r = data.rows[i], c = r[11 + claim()], name = data.claims[claim()], s = status(r), p, table;
    card.textContent = '';
    var close = element('button', '\u00d7', 'close');
    close.setAttribute('aria-label', 'Close');
    close.onclick = function () { pinned = null; hide(); };
    card.appendChild(close);
    card.appendChild(element('h4', '\u201c' + tokens[i].textContent + '\u201d'));
    card.appendChild(element('p', 'token ' + r[1] + ' \u00b7 t = ' + r[0] + ' \u00b7 ' + SOURCE[r[2]] +
      (r[4] < 0 ? '' : ' \u00b7 round ' + r[4] + (r[2] === 1 ? ', depth ' + r[3] : ', after ' + r[3] + ' accepted')) + (r[10] ? ' \u00b7 last: ' + r[10] : ''), 'soft'));
    p = element('p', name[0] + ', m = ' + name[1] + (name[1] === 'tree' ? ' (' + c[1] + ' here)' : '') + ', k = ' + c[0] + ': ');
    p.appendChild(element('span', STATUS[s], 'verdict s' + s));
    card.appendChild(p);
    table = element('table');
    if (c[5] !== null || r[6] !== null) {
      var head = element('thead');
      row(head, ['', 'draft has', 'limit', 'certified']);
      table.appendChild(head);
      var body = table.appendChild(element('tbody'));
      ['KLf < KLf*, nats', 'KLr < KLr*, nats', 'TV < TV*'].forEach(function (label, d) {
        row(body, [label, r[6 + d] === null ? '\u2013' : '\u2264 ' + r[6 + d], c[5 + d] === null ? '\u2013' : c[5 + d] === 'inf' ? '\u221e' : '\u2265 ' + c[5 + d],
          c[4] ? VERDICT[c[4].charAt(d)] : '\u2013']);
      });
      card.appendChild(table);
    }
    p = element('p', 'entropy \u2264 ' + r[5] + ' nats', 'soft');
    if (c[8] !== null) p.textContent += ' \u00b7 stability radius \u2265 ' + c[8] + ' logits';
    if (r[9] !== null) p.textContent += ' \u00b7 regret \u2264 ' + r[9] + ' nats';
    p.textContent += ' \u00b7 this token in A: ' + ['no', 'yes', 'undecided'][c[2]];
    p.style.margin = '.5rem 0 0';
    card.appendChild(p);
    p = card.appendChild(element('p'));
    p.style.margin = '.45rem 0 0';
    p.appendChild(element('code', inspect(i), 'look'));
  }

  function show(i) {
    fill(i);
    card.hidden = false;
    var box = tokens[i].getBoundingClientRect(), size = card.getBoundingClientRect();
    var left = Math.max(12, Math.min(box.left, window.innerWidth - size.width - 12));
    var below = box.bottom + 10 + size.height < window.innerHeight;
    card.style.left = left + 'px';
    card.style.top = (below ? box.bottom + 10 : Math.max(8, box.top - size.height - 10)) + 'px';
    tokens.forEach.call(document.querySelectorAll('.k.on'), function (t) { t.classList.remove('on'); t.removeAttribute('aria-describedby'); });
    tokens[i].classList.add('on');
    tokens[i].setAttribute('aria-describedby', 'card');
  }

  function hide() {
    card.hidden = true;
    document.querySelectorAll('.k.on').forEach(function (t) { t.classList.remove('on'); });
  }

  function indexOf(target) {
    var token = target.closest ? target.closest('.text .k') : null;
    return token ? tokens.indexOf(token) : -1;
  }

  document.querySelectorAll('.text').forEach(function (text) {
    var first = text.querySelector('.k');
    if (first) first.tabIndex = 0; // one stop per text for the Tab key; arrows move inside
    text.addEventListener('mouseover', function (e) { var i = indexOf(e.target); if (i >= 0 && pinned === null) show(i); });
    text.addEventListener('mouseleave', function () { if (pinned === null) hide(); });
    text.addEventListener('focusin', function (e) { var i = indexOf(e.target); if (i >= 0) show(i); });
    text.addEventListener('focusout', function () { if (pinned === null) hide(); });
    text.addEventListener('click', function (e) {
      var i = indexOf(e.target);
      if (i >= 0 && i !== pinned) { pinned = i; show(i); } else { pinned = null; hide(); }
      e.stopPropagation();
    });
    text.addEventListener('keydown', function (e) {
      var i = indexOf(e.target), step = { ArrowRight: 1, ArrowLeft: -1 }[e.key], next = step && tokens[i + step];
      if (i < 0 || !next || !text.contains(next)) return;
      tokens[i].tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      e.preventDefault();
    });
  });
  document.addEventListener('click', function (e) { if (!card.contains(e.target)) { pinned = null; hide(); } });
  document.addEventListener('keydown', function (e) { if (e.key === 'Escape') { pinned = null; hide(); } });
  window.addEventListener('scroll', function () { if (pinned === null) hide(); }, { passive: true });
  if (claimPick) claimPick.addEventListener('change', recolour);
  if (proofPick) proofPick.addEventListener('change', recolour);
  if (onlyPick) {
    document.querySelectorAll('#legend [data-s]').forEach(function (item) {
      var option = element('option', STATUS[+item.dataset.s].split(':')[0]);
      option.value = item.dataset.s;
      onlyPick.appendChild(option);
    });
    onlyPick.addEventListener('change', recolour);
  }
  if (claim() !== data.lead || proof() >= 0 || only() >= 0) recolour(); // what a browser remembers of the last visit
  else showClaim();

  function showRound() {
    document.querySelectorAll('[data-round]').forEach(function (part) {
      part.hidden = +roundPick.value >= 0 && part.dataset.round !== roundPick.value;
    });
  }
  if (roundPick) {
    roundPick.addEventListener('change', showRound);
    showRound();
  }

  // Tables sort by any column: numbers in a cell one after the other, else text.
  function compare(a, b) {
    var x = a.match(/^[\u2264\u2265 ]*-?[\d.]/) ? a.replace(/,(?=\d{3})/g, '').match(/-?[\d.]+(e[-+]?\d+)?/g) : null;
    var y = b.match(/^[\u2264\u2265 ]*-?[\d.]/) ? b.replace(/,(?=\d{3})/g, '').match(/-?[\d.]+(e[-+]?\d+)?/g) : null;
    if (!x || !y) return x ? -1 : y ? 1 : a.localeCompare(b);
    for (var i = 0; i < x.length && i < y.length; i++) if (+x[i] !== +y[i]) return x[i] - y[i];
    return x.length - y.length;
  }
  document.querySelectorAll('table.sortable').forEach(function (table) {
    var heads = Array.prototype.slice.call(table.tHead.rows[0].cells), body = table.tBodies[0];
    heads.forEach(function (head, column) {
      if (!head.textContent) return;
      var button = element('button', undefined, 'sort');
      button.type = 'button';
      while (head.firstChild) button.appendChild(head.firstChild);
      head.appendChild(button);
      button.addEventListener('click', function () {
        var down = head.getAttribute('aria-sort') === 'ascending', rows = Array.prototype.slice.call(body.rows);
        rows.sort(function (a, b) {
          return (down ? -1 : 1) * compare(a.cells[column].textContent.trim(), b.cells[column].textContent.trim());
        });
        heads.forEach(function (other) { other.removeAttribute('aria-sort'); });
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        rows.forEach(function (row) { body.appendChild(row); });
      });
    });
  });
  document.querySelectorAll('.scroll').forEach(function (box) { // what scrolls can be scrolled by keys
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
  });

  document.querySelectorAll('button.copy').forEach(function (button) {
    button.addEventListener('click', function () {
      var code = button.parentNode.querySelector('code'), range = document.createRange();
      range.selectNodeContents(code);
      window.getSelection().removeAllRanges();
      window.getSelection().addRange(range);
      if (document.execCommand('copy')) button.textContent = 'Copied';
    });
  });
  window.addEventListener('beforeprint', function () {
    document.querySelectorAll('details').forEach(function (d) { d.open = true; });
    document.querySelectorAll('[data-round]').forEach(function (part) { part.hidden = false; });
  });
})();
