// The pictures are complete without this script; it adds sliders that read a curve and move the draft of an example.
(function () {
  'use strict';

  function numbers(text) { return text.split(' ').map(Number); }
  function round(x, digits) { return x === 0 ? '0' : String(+x.toPrecision(digits)); }

  function make(parent, name, className) {
    var e = parent.appendChild(document.createElement(name));
    if (className) e.className = className;
    return e;
  }

  // A labelled slider from 0 to 1000 and a line of text that follows it.
  function slider(parent, label, at, move) {
    var line = make(parent, 'label', 'slide'), input;
    line.textContent = label;
    input = make(line, 'input');
    input.type = 'range';
    input.min = 0;
    input.max = 1000;
    input.value = Math.round(1000 * at);
    input.addEventListener('input', function () { move(input.value / 1000); });
    return input;
  }

  // Where a pointer is, in units of the picture.
  function place(svg, e) {
    var box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
    return { x: (e.clientX - box.left) * view.width / box.width, y: (e.clientY - box.top) * view.height / box.height };
  }

  function follow(svg, move) {
    svg.style.touchAction = 'pan-y';
    svg.addEventListener('pointerdown', function (e) { move(place(svg, e)); });
    svg.addEventListener('pointermove', function (e) { if (e.buttons || e.pointerType === 'mouse' && svg.dataset.hover) move(place(svg, e)); });
  }

  // A curve of steps, "M x y H x V y ...": its height at x.
  function height(path, x) {
    var y = 0, parts = path.getAttribute('d').match(/[MHV][^MHV]*/g), i, values;
    for (i = 0; i < parts.length; i++) {
      values = numbers(parts[i].slice(1));
      if (parts[i].charAt(0) === 'M') y = values[1];
      if (parts[i].charAt(0) === 'H' && values[0] >= x) return y;
      if (parts[i].charAt(0) === 'V') y = values[0];
    }
    return y;
  }

  document.querySelectorAll('.reads').forEach(function (box) {
    var plane = numbers(box.dataset.plane), svg = box.querySelector('svg'), level = svg.querySelector('.line:not(.second)');
    var draft = svg.querySelector('.line.second'), hair = svg.appendChild(level.cloneNode()), input, text;
    var unit = box.dataset.name === 'TV' ? '' : ' nats';
    hair.setAttribute('class', 'hair');
    function share(path, x) { return (plane[3] - height(path, x)) / (plane[3] - plane[2]); }
    function percent(s) { return Math.round(100 * s) + ' %'; }
    function show(at) {
      var x = plane[0] + at * (plane[1] - plane[0]), value = Math.pow(10, plane[4] + at * (plane[5] - plane[4]));
      hair.setAttribute('d', 'M' + x + ' ' + plane[2] + 'V' + plane[3]);
      text.textContent = box.dataset.name + ' below ' + round(value, 3) + unit + ': certified at about ' + percent(share(level, x)) +
        ' of steps' + (draft ? '; this draft is below at about ' + percent(1 - share(draft, x)) : '') + '.';
    }
    input = slider(box, 'x', 0.5, show);
    text = make(box, 'p', 'note');
    svg.dataset.hover = 1;
    follow(svg, function (at) {
      var share = Math.min(1, Math.max(0, (at.x - plane[0]) / (plane[1] - plane[0])));
      input.value = Math.round(1000 * share);
      show(share);
    });
    show(0.5);
  });

  function distance(p, q, kind) {
    return p.reduce(function (sum, a, i) {
      var b = q[i];
      return sum + (kind === 2 ? Math.abs(a - b) / 2 : kind === 0 ? a * Math.log(a / b) : b > 0 ? b * Math.log(b / a) : 0);
    }, 0);
  }

  function says(p, q, levels) {
    var names = ['KLf', 'KLr', 'TV'], by = [], parts = levels.map(function (level, kind) {
      var value = distance(p, q, kind), below = value < level;
      if (below) by.push(names[kind]);
      return names[kind] + ' ' + round(value, 3) + (below ? ' < ' : ' \u2265 ') + round(level, 3);
    });
    var covered = q.slice(1).every(function (other) { return other < q[0]; });
    return 'q = (' + q.map(function (x) { return x.toFixed(3); }).join(', ') + '): ' + (by.length ? 'certified by ' + by.join(', ')
      : covered ? 'covered, not certified' : 'coverage fails') + '. ' + parts.join('; ') + '.';
  }

  document.querySelectorAll('.panel[data-p]').forEach(function (panel) {
    var p = numbers(panel.dataset.p), q = numbers(panel.dataset.q), levels = numbers(panel.dataset.level), before = panel.querySelector('.made');
    var corners = panel.querySelector('[data-corners]'), box = document.createElement('div'), text, first, second;
    panel.insertBefore(box, before);
    function dot(svg, x, y) { svg.querySelector('.q').setAttribute('transform', 'translate(' + x + ' ' + y + ')'); }
    function draw() {
      text.textContent = says(p, q, levels);
      panel.querySelectorAll('[data-line]').forEach(function (line) {
        var at = numbers(line.dataset.line), value = Math.min(1, distance(p, q, at[5]) / at[4]);
        dot(line, at[0] + (at[1] - at[0]) * q[0], at[3] - (at[3] - at[2]) * value);
      });
      if (!corners) return;
      var c = numbers(corners.dataset.corners);
      dot(corners, c[0] * q[0] + c[2] * q[1] + c[4] * q[2], c[1] * q[0] + c[3] * q[1] + c[5] * q[2]);
    }
    function inside(x) { return Math.min(0.999, Math.max(0.001, x)); }
    function set(a, b) {
      a = inside(a);
      q = p.length === 2 ? [a, 1 - a] : [a, (1 - a) * inside(b), (1 - a) * (1 - inside(b))];
      draw();
    }
    function part() { return p.length === 2 ? 1 : q[1] / (1 - q[0]); }
    first = slider(box, 'q of the first token', q[0], function (x) { set(x, part()); });
    if (corners) second = slider(box, 'of the rest, to the second', part(), function (x) { set(q[0], x); });
    text = make(box, 'p', 'note');
    text.setAttribute('role', 'status');
    if (corners) follow(corners.querySelector('svg'), function (at) {
      var c = numbers(corners.dataset.corners), third = (c[1] - at.y) / (c[1] - c[5]);
      var b = (at.x - c[0] - third * (c[4] - c[0])) / (c[2] - c[0]), a = 1 - b - third;
      if (a <= 0 || b <= 0 || third <= 0) return;
      set(a, b / (1 - a));
      first.value = Math.round(1000 * q[0]);
      second.value = Math.round(1000 * part());
    });
    panel.querySelectorAll('[data-line]').forEach(function (line) {
      var at = numbers(line.dataset.line);
      follow(line.querySelector('svg'), function (where) {
        set((where.x - at[0]) / (at[1] - at[0]), 1);
        first.value = Math.round(1000 * q[0]);
      });
    });
    draw();
  });
})();
