"""What the system and libraries say, where our sentences repeat it.

English -> Chinese, {name} is a hole for a value.
"""

from __future__ import annotations

SYSTEM = {
    "No space left on device": "磁盘空间不足",
    "Disk quota exceeded": "超出磁盘配额",
    "Permission denied": "没有权限",
    "Operation not permitted": "不允许此操作",
    "Read-only file system": "文件系统是只读的",
    "No such file or directory": "文件或文件夹不存在",
    "Not a directory": "不是文件夹",
    "Is a directory": "是文件夹",
    "File exists": "文件已存在",
    "File name too long": "文件名过长",
    "File too large": "文件过大",
    "Input/output error": "读写错误",
    "Too many open files": "打开的文件过多",
    "Cannot allocate memory": "内存不足",
    "Device or resource busy": "设备或资源正忙",
    "Connection refused": "连接被拒绝",
    "Connection reset by peer": "连接被对方断开",
    "Connection timed out": "连接超时",
    "Network is unreachable": "网络不可达",
    "No route to host": "无法到达主机",
    "Name or service not known": "域名无法解析",
    "Temporary failure in name resolution": "域名暂时无法解析",
    "timed out": "超时",
    "The read operation timed out": "读取超时",
    "File is not a zip file": "不是 zip 文件",
    "disk I/O error": "磁盘读写错误",
    "database is locked": "数据库被占用",
    "attempt to write a readonly database": "数据库是只读的",
    "unable to open database file": "无法打开数据库文件",
}
