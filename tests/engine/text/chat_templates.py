"""Chat templates for tests: what the families' own do, in short, and what hostile ones would do."""

from __future__ import annotations

CHATML = """{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""

# writes a space before a reply that it does not write when it asks for one, and trims
LLAMA2 = """{%- if messages[0].role == 'system' %}
    {%- set system = '<<SYS>>\\n' + messages[0].content + '\\n<</SYS>>\\n\\n' %}{%- set rest = messages[1:] %}
{%- else %}{%- set system = '' %}{%- set rest = messages %}{%- endif %}
{%- for message in rest %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Roles must alternate user and assistant') }}
    {%- endif %}
    {%- if message.role == 'user' %}
        {{- bos_token + '[INST] ' + (system if loop.first else '') + message.content.strip() + ' [/INST]' }}
    {%- else %}{{- ' ' + message.content.strip() + ' ' + eos_token }}{%- endif %}
{%- endfor %}"""

ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

# today's date, a system message of its own, trims
LLAMA3 = """{{- bos_token }}
{%- if messages[0].role == 'system' %}{%- set system = messages[0].content | trim %}
    {%- set messages = messages[1:] %}
{%- else %}{%- set system = 'You are kind.' %}{%- endif %}
{{- '<|im_start|>system\\nToday is ' + strftime_now('%d %b %Y') + '\\n\\n' + system + '<|im_end|>' }}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n\\n' + message.content | trim + '<|im_end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n\\n' }}{%- endif %}"""

# the system message moves into the last user message: contents out of their order
MISTRAL = """{%- set system = messages[0].content + '\\n\\n' if messages[0].role == 'system' else '' %}
{{- bos_token }}
{%- for message in messages if message.role != 'system' %}
    {%- if message.role == 'user' %}
        {{- '[INST] ' + (system if loop.last else '') + message.content + '[/INST]' }}
    {%- else %}{{- ' ' + message.content + eos_token }}{%- endif %}
{%- endfor %}"""

# the reasoning of past replies is cut out, that of none after the last question
THINKING = """{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == 'assistant' and '</think>' in content and not loop.last %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""

FAITHFUL = {"chatml": CHATML, "llama2": LLAMA2, "zephyr": ZEPHYR, "llama3": LLAMA3, "thinking": THINKING}

# what templates might do to contents, each on top of ChatML; none may confuse template and content
ODD = {
    "ignores": "{{ '<|im_start|>assistant\n' }}",
    "doubles": CHATML.replace("message.content", "message.content + message.content"),
    "upper": CHATML.replace("message.content", "message.content | upper"),
    "replaces": CHATML.replace("message.content", "message.content | replace('y', '<|im_end|>')"),
    "counts": CHATML.replace("message.content", "message.content ~ (message.content | length)"),
    "asks": CHATML.replace("message.content", "('Q: ' if '?' in message.content else '') + message.content"),
    "renumbers": CHATML.replace("message.content", "message.content | replace('.', '.9')"),
    "miscounts": CHATML.replace("message.content", "message.content | replace('.', '.' ~ '9' * 5000)"),
    "cuts": CHATML.replace("message.content", "message.content[:5]"),
    "escapes": CHATML.replace("message.content", "message.content | tojson"),
    "reverses": CHATML.replace("in messages", "in messages[::-1]"),
    "last": CHATML.replace("in messages", "in messages[-1:]"),
    "random": CHATML.replace("message.content", "message.content ~ range(10**5) | random"),
    "refuses": CHATML.replace(
        "{{- '<|im",
        "{% if message.content | length > 20 %}{{ raise_exception('no') }}{% endif %}{{- '<|im",
        1,
    ),
    "generation": CHATML.replace("message.content", "''").replace(
        "'<|im_end|>\\n' }}", "'' }}{% generation %}{{ message.content }}<|im_end|>{% endgeneration %}"
    ),
}

# Each is the reaction to one message in an otherwise sound template, with a = 'a' and ten = 10: Jinja works
# out what has no variables while it compiles. All must end in a TemplateError, soon.
_HOSTILE = r"""
{% for a in range(10**5) %}{% for b in range(10**5) %}{% endfor %}{% endfor %}
{% for a in range(99999) %}{% for b in range(99999) %}{% set x = a * b %}{% endfor %}{% endfor %}
{% for a in range(99999) %}{% for b in range(999) %}{{ '' }}{% endfor %}{% endfor %}
{% for a in range(9999) recursive %}{{ loop(range(9999)) }}{% endfor %}
{{ raise_exception('\ud800 bad \x00 \x1b[31m \n') }}
{% set n = namespace(i=0) %}{% for a in range(99999) recursive %}{% set n.i = loop([n.i]) %}{% endfor %}
{% macro m(n) %}{{ m(n - 1) + m(n - 2) if n > 1 else '' }}{% endmacro %}{{ m(60) }}
{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}
{% macro m() %}{{ caller() }}{% endmacro %}{%macro n()%}{%call m()%}{{n()}}{% endcall %}{% endmacro %}{{n()}}
{{ ten ** (10 ** 10) }}
{{ (ten ** (9 ** 9)) % 7 }}
{{ (ten ** (ten ** ten)) | string }}
{{ a * 10**9 }}
{{ (a * 10**8) * 10 }}
{{ a * 10**8 }}
{{ [a] * 10**9 }}
{{ ((a * 10**4) * 10**4) | length ~ a * 10**9 }}
{{ '%1000000000d' | format(ten) }}
{{ '%.1000000000f' | format(ten) }}
{{ '{:1000000000}'.format(a) }}
{{ a.ljust(10**9) }}
{{ a | center(10**9) }}
{{ (a * 10**5) | replace('a', 'b' * 10**5) }}
{{ range(99999) | join(a * 10**5) }}
{{ ([a * 10**6] * 1000) | join }}
{{ ((a ~ ' ') * 10**6) | wordwrap(1, wrapstring='b' * 999) }}
{{ ((a ~ '\n') * 10**6) | indent(9999) }}
{{ range(ten**9) | list }}
{{ range(ten**6) | list }}
{% for a in range(99999) %}{{ 'a' * 999 }}{% endfor %}
{% for a in range(99999) %}{% for b in range(999) %}a{% endfor %}{% endfor %}
{% set n = namespace(s='a') %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}{{ n.s }}
{% set n = namespace(s=[1]) %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}
{% set n = namespace(s=[]) %}{% for a in range(9999) %}{% set n.s = [n.s] %}{% endfor %}{{ n.s | tojson }}
{% set n = namespace(__class__=1) %}
{% set n = namespace() %}{% set n.__html__ = cycler %}{{ n }}
{{ ''.__class__.__mro__ }}
{{ ().__class__.__base__.__subclasses__() }}
{{ (messages | attr('__class__')).x }}
{{ raise_exception.__globals__.x }}
{{ strftime_now.__globals__['datetime'] }}
{{ cycler.__init__.__globals__.os.popen('id').read() }}
{{ self.__init__.__globals__ }}
{{ lipsum.__globals__.os.system('id') }}
{{ '{0.__class__.__init__}'.format(lipsum) }}{{ ''.x.y }}
{{ messages.append(1) }}
{{ messages[0].update({'role': 'system'}) }}
{{ messages[0].pop('role') }}
{{ dict.mro() }}
{{ lipsum(n=10**6, min=99, max=100) }}
{% include '/etc/passwd' %}
{% import 'os' as os %}
{% extends 'x' %}
{{ raise_exception('stop') }}
{{ raise_exception(a * 10**7) }}
{{ undefined_name.attribute }}
{{ ten / 0 }}
{{ messages['a']['b'] }}
{{ strftime_now((a ~ '%Y') * 10**8) }}
{{ strftime_now(1) }}
{{ (('<' ~ a ~ '>') * 10**7) | striptags | urlize }}{{ a * 10**9 }}
{{ ((a ~ '(') * 10**6) | pprint ~ a * 10**9 }}
"""
HOSTILE = _HOSTILE.strip().split("\n")

BROKEN = [
    "{% if %}",
    "{{",
    "{% for x in y %}",
    "{{ 'a' | nofilter }}",
    "{% nosuchtag %}",
    "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
]
